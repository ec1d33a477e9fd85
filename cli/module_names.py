"""Objects of a user's own modules, named as `module:name` on the command line. Their modules are run.

Guarded by tests/cli/test_command_line.py.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from ..errors import InvalidArgument


def object_at(text: str, command: str, example: str) -> Any:
    """The value of a module of the user that `module:name` names."""
    module, colon, name = text.partition(":")
    if not colon or not module or not name:
        raise InvalidArgument(f"{command} takes MODULE:NAME, such as {example}, but was given {text!r}")
    if module.endswith(".py"):
        file = Path(module).stem
        raise InvalidArgument(f"{command} takes a module and not a file: write {file}:{name} in its folder")
    sys.path.insert(0, "")
    value: Any = importlib.import_module(module)
    for part in name.split("."):
        if not hasattr(value, part):
            raise InvalidArgument(f"the module {module!r} has no {name!r}")
        value = getattr(value, part)
    return value


__all__ = ["object_at"]


def __dir__() -> list[str]:
    return __all__
