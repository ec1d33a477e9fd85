"""The page of the command: each of its examples prints what the page says."""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from uncombine.cli.command_line import main, parser_of

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "command_line.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_the_examples_print_what_the_page_says(
    tmp_path: Path, user_module: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = list(BLOCK.finditer(PAGE))
    ran = 0
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        kind, text = block.groups()
        if kind == "" and not text.startswith(("uncombine ", "eval ")):
            name = re.findall(r"`([\w.]+)`", PAGE[: block.start()])[-1]
            if name.endswith(".py"):
                user_module(name.removesuffix(".py"), text)
            (tmp_path / name).write_text(text)
        elif kind == "" and after is not None and after[1] == "text":
            told = ""
            for line in text.replace("\\\n", "").splitlines():
                main(shlex.split(line)[1:])
                shown = capsys.readouterr()
                told += shown.out + shown.err
            assert doctest.OutputChecker().check_output(after[2], told, LIKE), f"{text}\n{told}"
            ran += 1
    assert ran > 8


def test_the_page_has_every_command_and_every_option() -> None:
    for name, command in parser_of().commands.items():
        assert f"uncombine {name}" in PAGE
        options = {action.option_strings[-1] for action in command.actions if action.option_strings}
        assert {option for option in options if option not in PAGE} == set()
