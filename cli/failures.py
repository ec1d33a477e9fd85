"""Failures: errors of the user's own code, and of Spark, as one sentence that names the line.

Guarded by tests/cli/test_failures.py.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import UncombineError

_NO_CODE_OF_USERS = {__name__.partition(".")[0], *sys.stdlib_module_names}
"""The packages whose lines say nothing to a user."""

_PYTHON_ERROR = re.compile(r"^\s*(?:[a-z]\w*\.)*(\w*(?:Error|Exception)\w*: .*)$", re.MULTILINE)
"""The lines of a text of Spark that name an error of Python."""


class Failed(UncombineError):
    """The command was used rightly, and what it should do failed or was refused."""


@contextmanager
def failures_of(what: str, others: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Make an error in the block a `Failed` in one sentence; those of other classes pass.

    >>> with failures_of("mine:totals"):
    ...     1 / 0  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    uncombine.cli.failures.Failed: mine:totals failed...: ZeroDivisionError: division by zero
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, (Failed, *others)):
            raise
        raise Failed(_sentence(what, error)) from error


def _sentence(what: str, error: Exception) -> str:
    """The sentence about an error, which is that of the library if it has one."""
    if isinstance(error, UncombineError):
        return str(error)
    if type(error).__module__.startswith("pyspark."):
        from ..sparkops.progress_log import own_error

        python_errors = _PYTHON_ERROR.findall(str(error))
        reason = own_error(str(error)) or [_first_line(error), *python_errors][-1]
        return f"{what} failed on Spark: {reason}"
    reason = _first_line(error)
    return f"{what} failed{_line_of(error)}: {type(error).__name__}{f': {reason}' if reason else ''}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _line_of(error: Exception) -> str:
    """The last line of the user's that an error went through; empty if there is none."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f" at {Path(error.filename).name}:{error.lineno}"
    line, tb = "", error.__traceback__
    while tb is not None:
        module = str(tb.tb_frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _NO_CODE_OF_USERS and "site-packages" not in tb.tb_frame.f_code.co_filename:
            [last] = traceback.extract_tb(tb, 1)
            line = f" at {Path(last.filename).name}:{last.lineno}" + (f" ({last.line})" if last.line else "")
        tb = tb.tb_next
    return line


__all__ = ["Failed", "failures_of"]


def __dir__() -> list[str]:
    return __all__
