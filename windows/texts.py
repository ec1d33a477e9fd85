"""Texts of users that stand for values: their greatest length, and the sentence about one that is not read.

Guarded by tests/windows/test_words.py, tests/windows/test_spans.py and tests/triggers/test_words.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import InvalidArgument, UncombineError

LONGEST = 2_000
"""The characters of a text that is read."""

_REFUSALS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RuntimeError)
"""The errors of Python for arguments that make no sense."""


def require_short(text: str, what: str, remedy: str = "write it in Python") -> None:
    """Raise for a text that is too long to be `what`."""
    if len(text) > LONGEST:
        raise InvalidArgument(
            f"the text of {what} has at most {LONGEST} characters, but {quoted(text)} has {len(text)}: {remedy}"
        )


@contextmanager
def reading(text: str, form: str) -> Iterator[None]:
    """Make every error of reading a text an `InvalidArgument`; `form` says what the text should be."""
    try:
        yield
    except UncombineError as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(f"{quoted(text)}: {error}") from None
    except SyntaxError:
        raise InvalidArgument(f"{quoted(text)} is not {form}") from None
    except (RecursionError, MemoryError):  # Python's parser has its own word for too many levels
        raise InvalidArgument(f"{quoted(text)} is nested too deep to be {form}") from None
    except _REFUSALS as error:
        raise InvalidArgument(f"{quoted(text)} is not {form}: {error}") from None


def quoted(text: str) -> str:
    """The text for a message, shortened.

    >>> quoted("fixed"), quoted("-" * 500) == repr("-" * 200) + "..."
    ("'fixed'", True)
    """
    return repr(text) if len(text) <= 200 else f"{text[:200]!r}..."
