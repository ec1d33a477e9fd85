"""`uncombine completion`: a script with which a shell completes the words of the command.

Guarded by tests/cli/test_command_line.py.
"""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import LibraryMissing
from .parser import Parser


def add_completion(parser: Parser) -> None:
    """The command, with its options."""

    def print_script(arguments: argparse.Namespace) -> int:
        print(_script(parser, arguments.shell))
        return 0

    completion = parser.command(
        "completion", print_script, 'print a completion script: eval "$(uncombine completion bash)"'
    )
    completion.add_argument("shell", choices=["bash", "fish", "tcsh", "zsh"])


def _script(parser: Parser, shell: str) -> Any:
    try:
        import shtab
    except ImportError:
        raise LibraryMissing(
            "completion needs the library shtab, which is not installed: pip install 'uncombine[completion]'"
        ) from None
    for action in (action for command in parser.commands.values() for action in command.actions):
        if action.metavar in ("FILE", "FOLDER"):
            action.complete = shtab.FILE if action.metavar == "FILE" else shtab.DIRECTORY  # type: ignore[attr-defined]
    return shtab.complete(parser, shell)


__all__ = ["add_completion"]


def __dir__() -> list[str]:
    return __all__
