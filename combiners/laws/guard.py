"""Errors in the user's own code: the law kit shows the operation and the user's line, and no line of the library."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from decimal import Overflow
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

import pyarrow as pa

from ..algebra import Accumulators, CombineFn
from ..combiner import Bound
from ..from_scalar import ScalarFn

_PACKAGE = __name__.partition(".")[0] + "."
_BEYOND = re.compile("overflow|too large|out of bounds|out of range|does not fit|precision", re.IGNORECASE)


class TooLarge(Exception):
    """An operation refused a number out of the range of its type, which breaks no law."""

    def __init__(self, operation: str, error: Exception) -> None:
        super().__init__(operation, error)
        self.operation, self.error = operation, error


class GuardedFn:
    """The operations of a `CombineFn`; an error of one of them is passed to `broke(operation, error)`."""

    def __init__(self, fn: CombineFn, broke: Callable[[str, Exception], None]) -> None:
        self.fn, self._broke = fn, broke
        self.fields = fn.fields

    def add(self, *args: Any, **named: Any) -> Accumulators:
        """Call `add` of the fn."""
        return self.run("add", self.fn.add, *args, **named)

    def merge(self, *args: Any) -> Accumulators:
        """Call `merge` of the fn."""
        return self.run("merge", self.fn.merge, *args)

    def negate(self, *args: Any) -> Accumulators:
        """Call `negate` of the fn."""
        return self.run("negate", self.fn.negate, *args)

    def uncombine(self, *args: Any) -> Accumulators:
        """Call `uncombine` of the fn."""
        return self.run("uncombine", self.fn.uncombine, *args)

    def zero(self, count: int) -> Accumulators:
        """Call `zero` of the fn."""
        return self.run("zero", self.fn.zero, count)

    def run(self, operation: str, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Call a function of the user; raise `TooLarge` if it refuses a number."""
        try:
            return function(*args, **named)
        except Exception as error:
            operation = _role(self.fn, error) or operation
            if beyond_range(error):
                raise TooLarge(operation, error) from None
            self._broke(operation, error)
            raise


def beyond_range(error: Exception) -> bool:
    """True if an error says that a number is too large for its type."""
    if isinstance(error, pa.ArrowInvalid):
        return bool(_BEYOND.search(str(error)))
    return isinstance(error, OverflowError | Overflow)


def trimmed(error: Exception) -> Exception:
    """The error with a traceback that begins in the user's own code; without a traceback if no line is the user's."""
    tb = error.__traceback__
    while tb is not None and _ours(tb):
        tb = tb.tb_next
    return error.with_traceback(tb)


def failure_text(operation: str, error: Exception) -> str:
    """The sentence about an error of an operation, with the user's line that raised it."""
    error = trimmed(error)
    return f"{operation} raised {type(error).__name__}{line_of(error)}: {error}"


def line_of(error: Exception) -> str:
    """The user's line that raised a trimmed error, as text; empty if there is none."""
    tb, lines = error.__traceback__, []
    while tb is not None:
        if not _ours(tb) and "site-packages" not in tb.tb_frame.f_code.co_filename:
            lines.append(traceback.extract_tb(tb, 1)[0])
        tb = tb.tb_next
    if not lines:
        return ""
    last = lines[-1]
    return f" at {Path(last.filename).name}:{last.lineno}" + (f" ({last.line})" if last.line else "")


def _ours(tb: TracebackType) -> bool:
    return str(tb.tb_frame.f_globals.get("__name__", "")).startswith(_PACKAGE)


def _role(fn: CombineFn, error: Exception) -> str | None:
    """The name of the function of a `from_scalar` that raised, or None."""
    parts = [part.fn for part in fn.plan.parts] if isinstance(fn, Bound) else [fn]
    roles: dict[CodeType | None, str] = {}
    for part in parts:
        if isinstance(part, ScalarFn):
            functions = {
                "create": part.create, "add": part.add_value, "merge": part.merge_states,
                "extract": part.extract_value, "uncombine": part.uncombine_states,
            }  # fmt: skip
            roles |= {getattr(f, "__code__", None): role for role, f in functions.items()}
    tb = error.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code in roles:
            return roles[tb.tb_frame.f_code]
        tb = tb.tb_next
    return None
