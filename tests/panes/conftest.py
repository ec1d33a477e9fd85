"""Makes the folders beside this one importable: golden, reference."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
