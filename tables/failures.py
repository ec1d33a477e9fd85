"""Errors of the libraries of targets as errors of this library: without credentials, and with a word on patience.

All work on a table goes through `attempt`, so that no target has a way of its own.

Guarded by tests/tables/test_tables_urls.py and tests/tables/test_tables_iceberg.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ..errors import TableMismatch, TableUnreachable, UncombineError
from ..urls import without_secrets

T = TypeVar("T")

_AWAY = re.compile(
    "error sending request|connection (?:refused|reset|closed|aborted|error)|timed? ?out|network_connection|curlcode|"
    "name or service not known|name resolution|temporarily unavailable|service unavailable",
    re.IGNORECASE,
)
"""The words of libraries for storage that have one kind of error for all: another attempt may succeed."""


def attempt(work: Callable[[], T], name: str, secrets: Callable[[], Sequence[str]], is_away: Callable[..., bool]) -> T:
    """Do the work on the table of this name; an error that shows a secret, or a server that is away, is one of ours.

    Other errors stay as they are. The new error is raised after the old one is over, and so is not chained to it.
    """
    try:
        return work()
    except Exception as error:
        failure = _failure(error, name, secrets(), is_away)
        if failure is None:
            raise
    raise failure


def _failure(error: Exception, name: str, secrets: Sequence[str], is_away: Callable[..., bool]) -> Exception | None:
    """The error in place of this one; None to keep it."""
    chain = list(_chain(error))
    words = without_secrets(str(error), secrets) or type(error).__name__
    shows = any(secret in text for secret in secrets for one in chain for text in (str(one), repr(one)))
    if isinstance(error, UncombineError):
        return type(error)(words) if shows else None
    if any(is_away(one) for one in chain):
        return TableUnreachable(f"{name} cannot be reached: {words}")
    return TableMismatch(f"{name} cannot be used ({type(error).__name__}): {words}") if shows else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and those from which it comes."""
    seen, todo = set[int](), [error]
    while todo:
        one = todo.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            todo += [other for other in (one.__cause__, one.__context__) if other is not None]


def is_network(error: BaseException) -> bool:
    """True for an error of a connection, or one of storage that says so.

    >>> is_network(ConnectionRefusedError()), is_network(OSError("Generic S3 error: error sending request"))
    (True, True)
    >>> is_network(OSError("no such file"))
    False
    """
    if isinstance(error, ConnectionError | TimeoutError) and not isinstance(error, UncombineError):
        return True
    module = type(error).__module__.partition(".")[0]
    if module in ("requests", "urllib3") and re.search("Connection|Timeout|MaxRetry|Protocol", type(error).__name__):
        return True
    return isinstance(error, OSError) and says_network(error)


def says_network(error: BaseException) -> bool:
    """True for an error whose text says that a connection failed."""
    return _AWAY.search(str(error)) is not None


__all__ = ["attempt", "is_network", "says_network"]
