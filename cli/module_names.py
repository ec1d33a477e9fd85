"""Objects of a user's own modules, named as `module:name` on the command line. Their modules are run.

Guarded by tests/cli/test_module_names.py.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from ..errors import InvalidArgument, nearest
from ..flows.flow import Flow, WindowedRows
from .failures import failures_of

_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def object_at(text: str, command: str, example: str) -> Any:
    """The value of a module of the user that `module:name` names."""
    module, colon, name = text.partition(":")
    if not colon or not module or not name:
        raise InvalidArgument(f"{command} takes MODULE:NAME, such as {example}, but was given {text!r}")
    if module.endswith(".py"):
        file = Path(module).stem
        raise InvalidArgument(f"{command} takes a module and not a file: write {file}:{name} in its folder")
    if "" not in sys.path:
        sys.path.insert(0, "")
    with failures_of(f"the import of {module!r}", (ImportError,)):
        value: Any = importlib.import_module(module)
    for part in name.split("."):
        if not hasattr(value, part):
            near = nearest(part, [one for one in dir(value) if not one.startswith("_")])
            raise InvalidArgument(f"the module {module!r} has no {name!r}: {near}")
        value = getattr(value, part)
    return value


def flow_at(text: str, command: str) -> Flow:
    """The flow at `module:name`, or the one that the function there makes, of a session of Spark if it takes one."""
    made = object_at(text, command, "mine:totals")
    if callable(made) and not isinstance(made, Flow):
        made = made_by(made, text, command)
    if isinstance(made, WindowedRows):
        raise InvalidArgument(f"{text} ends with window(...), which is no flow yet: add .combine(...)")
    if not isinstance(made, Flow):
        raise InvalidArgument(f"{text} is a {type(made).__name__}, and {command} takes a flow or a function of one")
    return made


def made_by(function: Callable[..., Any], text: str, command: str) -> Any:
    """The result of a function of the user without arguments, or of one of `spark`, which gets a session."""
    parameters = signature(function).parameters.values()
    needed = [one.name for one in parameters if one.default is Parameter.empty and one.kind in _BY_PLACE]
    if needed not in ([], ["spark"]):
        raise InvalidArgument(
            f"{text} needs {', '.join(needed)}, and {command} calls a function without arguments, or one of spark, "
            "which gets a session of uc.session()"
        )
    with failures_of(text, (ImportError,)):
        if not needed:
            return function()
        from ..sparkops.session import session

        # An error comes as one sentence, and not once more in Spark's log.
        return function(spark=session(f"uncombine {command}", settings={"spark.log.level": "FATAL"}))


__all__ = ["flow_at", "made_by", "object_at"]


def __dir__() -> list[str]:
    return __all__
