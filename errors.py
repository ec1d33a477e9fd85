"""The error classes: each is an `UncombineError` and also the builtin error that fits."""

from __future__ import annotations

import copyreg
import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from os import PathLike
from typing import Any, Self


class UncombineError(Exception):
    """The base class of all errors that uncombine raises on purpose.

    Each subclass is also a subclass of a builtin error (`TypeError`, `ValueError`, `LookupError` and so on), so
    code that does not know uncombine can catch it.

    >>> import uncombine as uc
    >>> try:
    ...     uc.AfterCount(0)
    ... except ValueError as error:
    ...     print(isinstance(error, uc.UncombineError), error)
    True AfterCount(n): n must be a whole number of at least 1, but is 0
    """


class TypeMismatch(UncombineError, TypeError):
    """A column, an argument or an accumulator has the wrong type."""


class InvalidArgument(UncombineError, ValueError):
    """An argument has a value that is not allowed."""


class UnknownColumn(UncombineError, LookupError):
    """The input does not have the column that was asked for; `column` is its name."""

    def __init__(self, message: str, column: str | None = None) -> None:
        super().__init__(message)
        self.column = column


class NoSuchStep(UncombineError, AttributeError):
    """A flow is asked for a method that it does not have; the message names what to write."""


class UnknownName(UncombineError, AttributeError):
    """The package has no such name; the message names the one to write."""


class NotRetractable(UncombineError, ValueError):
    """A combiner is asked for a retraction that its capability does not allow."""


class LawViolation(UncombineError, AssertionError):
    """A combiner breaks a law of its declared capability; `law` is the law's name."""

    def __init__(self, message: str, law: str | None = None) -> None:
        super().__init__(message)
        self.law = law


class FlowViolation(UncombineError, AssertionError):
    """A flow leaves other rows than expected; `script` is the smallest script found, and `test` a test as source."""

    def __init__(
        self,
        message: str,
        script: Sequence[Any] = (),
        test: str = "",
        picture: Callable[[str | PathLike[str]], bool] | None = None,
    ) -> None:
        super().__init__(message)
        self.script, self.test, self._picture = list(script), test, picture

    def draw(self, path: str | PathLike[str]) -> bool:
        """Draw the script and its panes into a file; False if matplotlib is not installed, or there are no panes."""
        return self._picture is not None and self._picture(path)


class OutOfRange(UncombineError, OverflowError):
    """A result or a time is outside the range of its type."""


class SparkUnavailable(UncombineError, RuntimeError):
    """Spark cannot run here, because pyspark or a fitting Java is not installed."""


class LibraryMissing(UncombineError, ImportError):
    """A library that an extra of the package installs is not there; the message has the command."""


class TableMismatch(UncombineError, ValueError):
    """A live table is not the one that the flow and the checkpoint write, or its rows are not."""


class TableUnreachable(UncombineError, ConnectionError):
    """The database or the files of a table cannot be reached now; another attempt may succeed."""


class StoreUnreachable(UncombineError, ConnectionError):
    """The object store of input files does not answer, or does not let this process in; no file is at fault."""


class RegistryUnreachable(UncombineError, ConnectionError):
    """The registry of schemas does not answer, or does not let this process in; no message is at fault."""


class UnreadableFile(UncombineError, OSError):
    """An input file cannot be read, or differs from the other files; `path` is its name."""

    def __init__(self, message: str, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class BrokerUnreachable(UncombineError, ConnectionError):
    """A cluster of Kafka does not answer, or does not let this process in; no message is at fault."""


class MessagesLost(UncombineError, LookupError):
    """Messages that were not read yet are not in their topic any more."""


class VersionsLost(UncombineError, LookupError):
    """Versions of a table that were not read yet, or files of them, are not there any more."""


class UnreadableMessage(UncombineError, ValueError):
    """A message of a topic cannot be read in the form that the flow was told."""


class MessageTooLarge(UncombineError, ValueError):
    """A row makes a message that is larger than its topic, or the client, takes."""


class WriterReplaced(UncombineError, RuntimeError):
    """Another run writes the topic of a query now, or a transaction took too long, so that nothing of it counts."""


class StateMismatch(UncombineError, ValueError):
    """Data that the library stored or sent was made by another flow, combiner or version, or is damaged."""


_OF_SOURCES = ("diff", "changelog", "watermark", "processing_time", "max_future")
"""Options of a source, which no step after it has."""

_SAME = {"slide": "period", "hop": "period", "every": "period", "timeout": "gap"}
"""Options of other libraries that are spelt like none of ours, or like another one."""


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint for a misspelt name: `did you mean 'x'?`, or the list of the known names."""
    names = list(names)
    same = [_SAME[name]] if _SAME.get(name) in names else []
    whole = sorted((one for one in names if len(name) > 4 and name in one), key=len)
    near = difflib.get_close_matches(name, names, n=1)
    close = same or difflib.get_close_matches(name, names, n=1, cutoff=0.8) or whole or near
    if close:
        return f"did you mean {close[0]!r}?"
    return "known are " + ", ".join(map(repr, names)) if names else "there are none"


def require_column(name: str, columns: Iterable[str], what: str) -> None:
    """Raise unless `name` is among `columns` once; `what` names the part that needs the column."""
    columns = list(columns)
    if not isinstance(name, str):
        raise InvalidArgument(f"{what} takes the name of a column, but was given {name!r}")
    if name not in columns:
        raise UnknownColumn(
            f"{what} needs column {name!r}, which the input does not have: {nearest(name, columns)}", name
        )
    if columns.count(name) > 1:
        raise InvalidArgument(
            f"{what} needs column {name!r}, but the input has {columns.count(name)} columns of this name: rename them"
        )


def require_options(options: Iterable[str], names: Iterable[str], what: str) -> None:
    """Raise `InvalidArgument` for the first option that `what` does not know."""
    names = list(names)
    for name in options:
        if name not in names:
            source = f"give it where the rows come in, as in uc.flow(rows, {name}=...)"
            remedy = source if name in _OF_SOURCES else nearest(name, names)
            raise InvalidArgument(f"{what} has no option {name!r}: {remedy}")


class NamedOptions:
    """A class of values whose constructor refuses arguments that it does not have, and names those that it has.

    >>> class Box(NamedOptions):
    ...     def __init__(self, width, height=1):
    ...         self.width, self.height = width, height
    >>> Box(widht=2)
    Traceback (most recent call last):
        ...
    uncombine.errors.InvalidArgument: Box() has no option 'widht': did you mean 'width'?
    >>> Box(height=2)
    Traceback (most recent call last):
        ...
    uncombine.errors.InvalidArgument: Box() needs 'width', but was given 1 argument: write Box(width)
    """

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        kind: Any = cls
        if kind.__new__ is _NEW:  # a class of the user may call this with less than its constructor takes
            _parameters(kind).require(len(arguments), options)
        return super().__new__(cls)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A copy, and a value that travelled, is made without the arguments."""
        made: Any = super().__reduce_ex__(protocol)
        if made[0] is copyreg.__newobj__ and type(self).__new__ is _NEW:  # type: ignore[attr-defined]
            return (_without_arguments, made[1][:1], *made[2:])
        return made


_NEW: Any = NamedOptions.__new__


def _without_arguments(kind: type) -> Any:
    return object.__new__(kind)


@dataclass(frozen=True)
class _Parameters:
    """The parameters of a constructor."""

    owner: str
    places: tuple[str, ...]
    """Those that can be given by place, in their order."""
    named: tuple[str, ...]
    """Those that must be given by name."""
    required: tuple[str, ...]
    any_place: bool
    any_name: bool

    def require(self, count: int, options: Mapping[str, Any]) -> None:
        """Raise `InvalidArgument` unless these are the arguments of a call: so many by place, and options by name."""
        if options and not self.any_name:
            require_options(options, (*self.places, *self.named), f"{self.owner}()")
        if count > len(self.places) and not self.any_place:
            raise InvalidArgument(
                f"{self.owner}() takes {_arguments(len(self.places))} by place, but was given {count}: write "
                f"{self._call(self.places)}"
            )
        by_place = self.places[:count]
        for name in by_place if options else ():
            if name in options:
                raise InvalidArgument(f"{self.owner}() was given {name!r} twice, by place and by name: leave one out")
        for name in self.required:
            if name not in options and name not in by_place:
                what = "a column" if name == "input" else repr(name)
                raise InvalidArgument(
                    f"{self.owner}() needs {what}, but was given {_arguments(count + len(options))}: write "
                    f"{self._call(self.required)}"
                )

    def _call(self, names: Iterable[str]) -> str:
        """A call with these arguments; a column stands for the input of a combiner."""
        texts = (f"{name}=..." if name in self.named else "'x'" if name == "input" else name for name in names)
        return f"{self.owner}({', '.join(texts)})"


def _arguments(count: int) -> str:
    return f"{count or 'no'} argument{'s' * (count != 1)}"


@cache
def _parameters(kind: Any) -> _Parameters:
    """The parameters of the constructor of a class."""
    own = list(inspect.signature(kind.__init__).parameters.values())[1:]
    places = [p for p in own if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [p for p in own if p.kind is p.KEYWORD_ONLY]
    return _Parameters(
        owner=kind.__name__,
        places=tuple(p.name for p in places),
        named=tuple(p.name for p in named),
        required=tuple(p.name for p in (*places, *named) if p.default is p.empty),
        any_place=any(p.kind is p.VAR_POSITIONAL for p in own),
        any_name=any(p.kind is p.VAR_KEYWORD for p in own),
    )


def level_of_user() -> int:
    """The stack level, for a warning of the caller, of the first code outside of this package."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(f"{__name__.rpartition('.')[0]}."):
        level, frame = level + 1, frame.f_back
    return level
