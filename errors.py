"""The exception family: wrong use is an `UncombineError` that is also the fitting builtin."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UncombineError(Exception):
    """The root of every error that uncombine raises on purpose.

    Each subclass is also a subclass of the builtin that fits (`TypeError`, `ValueError`,
    `KeyError`-like lookups are `LookupError`), so code that knows nothing of uncombine can catch it.

    >>> import uncombine as uc
    >>> try:
    ...     uc.AfterCount(0)
    ... except ValueError as error:
    ...     print(isinstance(error, uc.UncombineError), error)
    True AfterCount takes a whole number from 1 on, not 0
    """


class TypeMismatch(UncombineError, TypeError):
    """A column, argument or accumulator has a type that its user cannot take."""


class InvalidArgument(UncombineError, ValueError):
    """An argument is outside the values that its receiver allows."""


class UnknownColumn(UncombineError, LookupError):
    """A column is named that the input does not have; `column` is its name."""

    def __init__(self, message: str, column: str | None = None) -> None:
        super().__init__(message)
        self.column = column


class NotRetractable(UncombineError, ValueError):
    """A combiner is asked to take back what its capability does not let it take back."""


class LawViolation(UncombineError, AssertionError):
    """A combiner breaks a law of its declared capability; `law` is the law's name."""

    def __init__(self, message: str, law: str | None = None) -> None:
        super().__init__(message)
        self.law = law


class OutOfRange(UncombineError, OverflowError):
    """A result or a time lies outside the range of its type."""


class SparkUnavailable(UncombineError, RuntimeError):
    """Spark cannot be used here: it is not installed, or there is no Java that it can run on."""


class UnreadableFile(UncombineError, OSError):
    """An input file cannot be read, or is not what the others are; `path` is its name."""

    def __init__(self, message: str, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class StateMismatch(UncombineError, ValueError):
    """A checkpoint or a stored accumulator was made by something else than what reads it."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The hint `(did you mean 'x'?)` for a misspelt name, or the list of what is there."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return "known are " + ", ".join(map(repr, known)) if known else "there are none"


def require_column(name: str, known: Iterable[str], what: str) -> None:
    """Raise `UnknownColumn` unless `name` is among `known`; `what` says who asks for it."""
    known = list(known)
    if not isinstance(name, str):
        raise InvalidArgument(f"{what} takes the name of a column, not {name!r}")
    if name not in known:
        raise UnknownColumn(
            f"{what} needs column {name!r}, which the input does not have: {nearest(name, known)}", name
        )


def require_options(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise `InvalidArgument` for the first option that `what` does not know."""
    known = list(known)
    for name in given:
        if name not in known:
            raise InvalidArgument(f"{what} has no option {name!r}: {nearest(name, known)}")
