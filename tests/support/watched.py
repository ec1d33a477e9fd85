"""Watches the files that this process writes, moves and removes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CHANGES = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.utime", "os.link", "os.symlink"}
_noted: list[list[str]] = []


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if not _noted:
        return
    if event == "open" and isinstance(args[2], int) and args[2] & _WRITES and not isinstance(args[0], int):
        _noted[-1].append(os.path.abspath(os.fsdecode(args[0])))
    elif event in _CHANGES:
        _noted[-1] += [
            os.path.abspath(os.fsdecode(one)) for one in args[:2] if isinstance(one, str | bytes | os.PathLike)
        ]


sys.addaudithook(_hook)


@contextmanager
def changed_paths() -> Iterator[list[str]]:
    """The paths that Python code writes, moves or removes within the block."""
    _noted.append([])
    try:
        yield _noted[-1]
    finally:
        _noted.pop()


def tree(folder: Path) -> dict[str, bytes]:
    """The files below a folder, with their bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
