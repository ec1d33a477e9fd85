"""Ids of parameters that are the same in every process."""

from __future__ import annotations

import re


def without_address(value: object) -> str:
    """The repr of a value without addresses of objects, which differ between the processes that share the tests."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
