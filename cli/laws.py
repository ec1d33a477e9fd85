"""`uncombine laws`: checks a combiner of the user's module against the laws of its capability.

Guarded by tests/cli/test_laws.py.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument, LawViolation
from .law_values import law_values, require_each, require_ready
from .module_names import made_by, object_at
from .named_files import add_format
from .parser import Parser, count_of

if TYPE_CHECKING:
    from ..combiners.laws.cases import Subject

NOTES = "HYPOTHESIS_STORAGE_DIRECTORY"
"""The variable with the folder of hypothesis."""


def add_laws(parser: Parser) -> None:
    """The command, with its options."""
    laws = parser.command("laws", _laws, "check a combiner of your own against the laws of its capability")
    laws.add_argument("combiner", metavar="MODULE:NAME", help="a combiner, or a function that makes one")
    laws.add_argument(
        "--values",
        action="append",
        metavar="VALUES",
        help="draw rows from these values alone: 1,2,3 or a JSON list or a file, or of a type, such as int64; once for "
        "each column",
    )
    laws.add_argument(
        "--column", action="append", metavar="COLUMN", help="a column of the file that --values names; may be repeated"
    )
    add_format(laws)
    laws.add_argument("--examples", type=count_of, default=200, help="the number of examples (default: 200)")
    laws.add_argument("--seed", type=count_of, help="a number that fixes the examples")
    laws.add_argument("--json", action="store_true", help="print the result as JSON")


def _laws(arguments: argparse.Namespace) -> int:
    if not arguments.examples:
        raise InvalidArgument("--examples must be at least 1: laws are checked by examples")
    values = law_values(arguments)
    combiner = _named(arguments.combiner)
    problem, tried = None, []
    try:
        with _notes_elsewhere():
            from ..combiners.laws import TYPES, check_laws, subjects
            from ..combiners.laws.kit import first_and_others

            if values is not None:
                require_ready(values, TYPES)
                subject, _ = next(subjects(combiner, values))
                require_each(list(subject.columns), values, arguments.combiner)
            check_laws(combiner, values, max_examples=arguments.examples, seed=arguments.seed)
            tried = list(first_and_others(combiner)) if values is None else []
    except LawViolation as error:
        problem = error
    if arguments.json:
        failure = {"law": problem.law, "message": str(problem)} if problem else {}
        types = {"types": {name: str(kind) for name, kind in tried[0].columns.items()}} if tried else {}
        print(json.dumps({"combiner": arguments.combiner, "passed": problem is None, **types, **failure}))
    elif problem is None:
        capability = getattr(combiner, "capability", None) or combiner.fn.capability
        print(f"{arguments.combiner} keeps the laws of {capability.name}{_over(tried)}")
    else:
        print(f"uncombine: {problem}", file=sys.stderr)
    return 1 if problem else 0


def _over(tried: list[Subject]) -> str:
    """The types on which a combiner was tried, the first of these, and how to try it on others that it takes too."""
    if not tried:
        return ""
    from ..combiners.laws.own import type_words

    words = [word for word in map(type_words, tried[1:]) if word is not None]
    others = min(words, key=lambda text: text.replace("float64", ""), default=None)
    over = ", ".join(f"{name}: {kind}" for name, kind in tried[0].columns.items())
    return f" over {over}" + (f"; others: --values {others}" if others else "")


@contextmanager
def _notes_elsewhere() -> Iterator[None]:
    """Let hypothesis keep its notes in a folder that is removed, and not in the working folder."""
    if NOTES in os.environ:
        yield
        return
    with TemporaryDirectory() as folder:
        os.environ[NOTES] = folder
        try:
            yield
        finally:
            del os.environ[NOTES]


def _named(text: str) -> Any:
    """The combiner at `module:name`; a function or class without arguments is called."""
    made = object_at(text, "laws", "mine:Spread")
    if hasattr(getattr(made, "fn", None), "capability"):
        return made  # a factory that `from_scalar` or `from_columns` made, which the law kit takes as it is
    if callable(made) and (isinstance(made, type) or not hasattr(made, "capability")):
        made = made_by(made, text, "laws")
    if not hasattr(made, "capability"):
        raise InvalidArgument(f"{text} is a {type(made).__name__}, and laws are those of combiners")
    return made


__all__ = ["add_laws"]


def __dir__() -> list[str]:
    return __all__
