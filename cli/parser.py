"""The parser of the command: argparse's, whose errors are one sentence, and the script by which a shell completes it.

Guarded by tests/cli/test_command_line.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ..errors import InvalidArgument, LibraryMissing, nearest


class Parser(argparse.ArgumentParser):
    """A parser that raises `InvalidArgument` for wrong use, and knows its commands by name."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.actions: list[argparse.Action] = []
        self.commands: dict[str, Parser] = {}
        self.remedies: dict[str, str] = {}
        super().__init__(*arguments, **options)
        self._parts: Any = None

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        action = super().add_argument(*names, **options)
        self.actions.append(action)
        return action

    def command(self, name: str, run: Callable[[argparse.Namespace], int], help: str) -> Parser:
        """A command of this parser, which is done by the function `run`."""
        if self._parts is None:
            self._parts = self.add_subparsers(dest="command", metavar="COMMAND")
        self.commands[name] = part = self._parts.add_parser(
            name, help=help, description=f"{help[:1].upper()}{help[1:]}."
        )
        part.set_defaults(run=run)
        return part

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """The arguments; raises for a command and an option that there is not.

        >>> parser = Parser("shop")
        >>> parser.command("replay", lambda _: 0, "replay a file").add_argument("--window")  # doctest: +ELLIPSIS
        _StoreAction(...)
        >>> parser.read(["relpay"])
        Traceback (most recent call last):
            ...
        uncombine.errors.InvalidArgument: there is no command 'relpay': did you mean 'replay'?
        """
        parser = self
        for word in arguments:
            if word == "--":
                break
            if word.startswith("--"):
                parser._require_option(word.partition("=")[0], self.commands)
            elif parser is self and not word.startswith("-"):
                if word not in self.commands:
                    raise InvalidArgument(f"there is no command {word!r}: {nearest(word, self.commands)}")
                parser = self.commands[word]
        return self.parse_args(arguments)

    def error(self, message: str) -> NoReturn:
        raise InvalidArgument(f"{message}: see {self.prog} --help")

    def _require_option(self, word: str, commands: Mapping[str, Parser]) -> None:
        """Raise unless an option begins with a word."""
        # Before anything else is looked at: argparse says of a misspelt option that the right one is missing.
        options = [option for action in self.actions for option in action.option_strings]
        if not any(option.startswith(word) for option in options):
            if word in self.remedies:
                raise InvalidArgument(f"{self.prog.split()[-1]} has no option {word}: {self.remedies[word]}")
            having = [name for name, one in commands.items() if any(word in a.option_strings for a in one.actions)]
            remedy = f"uncombine {' and '.join(having)} {'has' if len(having) == 1 else 'have'} it" if having else None
            raise InvalidArgument(f"{self.prog.split()[-1]} has no option {word}: {remedy or nearest(word, options)}")


def count_of(text: str) -> int:
    """The number that an option has.

    >>> count_of("50")
    50
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, but is {text!r}")
    return int(text)


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


__all__ = ["Parser", "add_completion", "count_of"]


def __dir__() -> list[str]:
    return __all__
