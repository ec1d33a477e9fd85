"""The public names of the library by their values, for a repr that is evaluated."""

from __future__ import annotations

import uncombine as uc

PUBLIC = {name: getattr(uc, name) for name in uc.__all__}
