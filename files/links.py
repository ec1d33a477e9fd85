"""Links among the files of a folder: one that leads out of the folder, in a circle, or to nothing is not followed.

A path that the user names may be a link itself. Guarded by tests/files/test_links.py.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..errors import UnreadableFile
from .data_paths import DataPath
from .file_format import SKIP
from .paths import parts_of


def require_inside(path: str, places: Sequence[DataPath]) -> None:
    """Raise for a file that is reached by a link of a listed folder that is not followed."""
    address, inside = parts_of(path)
    if address or any(not place.pattern and place.fixed == inside for place in places):
        return
    reasons = [fault_of_link(inside, place.fixed) for place in places if place.has(inside)]
    if reasons and None not in reasons:
        raise UnreadableFile(f"{path} {reasons[0]}, {SKIP}", path)


def fault_of_link(path: str, folder: str) -> str | None:
    """The reason why a link between a local folder and a path below it is not followed; None if there is none.

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> os.symlink("nothing.csv", f"{folder}/a.csv")
    >>> fault_of_link(f"{folder}/a.csv", folder)
    "is a link to 'nothing.csv', which does not exist: restore it"
    """
    top = os.path.realpath(folder)
    passed = [top]
    here = folder.rstrip("/")
    for name in path[len(here) + 1 :].split("/"):
        here = f"{here}/{name}"
        if not os.path.islink(here):
            passed.append(f"{passed[-1]}/{name}")
            continue
        target = os.path.realpath(here)
        where = "is" if here == path else f"is below {here},"
        if not os.path.exists(target):
            return f"{where} a link to {os.readlink(here)!r}, which does not exist: restore it"
        if not f"{target}/".startswith(f"{top.rstrip('/')}/"):
            return f"{where} a link out of {folder}, and such links are not followed: name it as a path of its own"
        if target in passed:
            return f"{where} a link to a folder above it: remove it"
        passed.append(target)
    return None


__all__ = ["fault_of_link", "require_inside"]
