"""Checks of everything that is read from a manifest, which may be damaged, or written by somebody else.

The names of chunks become names of files of the host, and the counts become sizes of arrays.

Guarded by tests/panes/state/test_stored_damage.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from ...errors import StateMismatch
from ...windows.times import MAX_TIME

_NAME = re.compile(r"[0-9a-f]{32}")
_COUNTS = ("dropped", "finished", "unassigned", "bad")
_ENTRY = {"id", "name", "size", "check", "count"}
_PART = {"rows", "deaths", "stamp", "alive", "least", "exact", "clocked"}

LARGEST = 2**31 - 1
"""The most rows of a chunk, and the most bytes of a value in a state store."""


def head_of(written: bytes) -> dict[str, Any]:
    r"""The first line of a manifest as it is, with its stores unread.

    >>> head_of(b'{"version":2}\nany bytes')
    {'version': 2}
    """
    try:
        head = json.loads(written.partition(b"\n")[0])
    except (ValueError, RecursionError):
        refuse("is no JSON")
    if not isinstance(head, dict):
        refuse("is no object of JSON")
    return head


def check_head(head: Mapping[str, Any], numbers: tuple[str, ...]) -> None:
    """Raise unless the token, the next number, the times and the counts of a manifest can be those of a state."""
    _name(head.get("token"), "token")
    _whole(head.get("next"), "next", 0)
    for name in numbers:
        _whole(head.get(name), name, -MAX_TIME)
    percentiles = head.get("percentiles")
    if not isinstance(percentiles, list) or not all(isinstance(one, list) and len(one) == 2 for one in percentiles):
        refuse("has percentiles that are no list of pairs")
    for percent, time in percentiles:
        if not isinstance(percent, int | float) or isinstance(percent, bool) or not 0 <= percent <= 100:
            refuse(f"has a percentile {_shown(percent)}")
        _whole(time, "percentiles", -MAX_TIME)
    counts = head.get("counts")
    if not isinstance(counts, dict) or set(counts) != set(_COUNTS):
        refuse("has no such counts as a state has")
    for name in _COUNTS:
        _whole(counts[name], name, -MAX_TIME)


def check_times(times: Any, where: str) -> None:
    """Raise unless these are times by name."""
    if not isinstance(times, dict):
        refuse(f"has {where} that is no object of JSON")
    for time in times.values():
        _whole(time, where, -MAX_TIME)


def check_store(parts: Any, next_id: int, ids: set[int]) -> None:
    """Raise unless these are the chunks of a store. `ids` has the numbers that others have, and gets theirs."""
    if not isinstance(parts, list):
        refuse("has a store that is no list of chunks")
    for part in parts:
        if not isinstance(part, dict) or set(part) != _PART or not isinstance(part["deaths"], list):
            refuse("has a chunk that is none")
        for entry in (part["rows"], *part["deaths"]):
            _check_entry(entry, next_id, ids)
        _check_counts(part)


def _check_entry(entry: Any, next_id: int, ids: set[int]) -> None:
    if not isinstance(entry, dict) or set(entry) != _ENTRY:
        refuse("has an entry that is none")
    _name(entry["name"], "name")
    _whole(entry["id"], "id", 0, next_id - 1)
    _whole(entry["size"], "size", 0, LARGEST)
    _whole(entry["check"], "check", 0, 2**32 - 1)
    _whole(entry["count"], "count", 0, LARGEST)
    if entry["id"] in ids:
        refuse(f"names number {entry['id']} of the state store twice")
    ids.add(entry["id"])


def _check_counts(part: Mapping[str, Any]) -> None:
    """The rows of a chunk that died are listed, or passed by a clock."""
    _name(part["stamp"], "stamp")
    rows = part["rows"]["count"]
    _whole(part["alive"], "alive", 0, rows)
    if not isinstance(part["exact"], bool) or not isinstance(part["clocked"], bool):
        refuse("has a chunk whose flags are no booleans")
    if not isinstance(part["least"], dict):
        refuse("has a chunk without its least times")
    for name, least in part["least"].items():
        _whole(least, f"least {_shown(name)}", -MAX_TIME - 1)
    listed = sum(entry["count"] for entry in part["deaths"])
    dead = rows - part["alive"]
    if listed > dead or (listed < dead and not part["clocked"]):
        refuse(f"has a chunk of {rows} rows, of which {part['alive']} are alive and {listed} are listed as dead")


def _name(value: Any, where: str) -> None:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        refuse(f"has a {where} {_shown(value)}, where 32 hexadecimal digits belong")


def _whole(value: Any, where: str, least: int, most: int = MAX_TIME) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        refuse(f"has {_shown(value)} as {where}, where a whole number from {least} to {most} belongs")


def _shown(value: Any) -> str:
    text = ascii(value) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:60]}..."


def refuse(fault: str) -> NoReturn:
    """Raise the error about a manifest that cannot be used."""
    raise StateMismatch(
        f"the manifest of the stored state {fault}: it is damaged or was not written by this library, so restore the "
        "checkpoint from a copy"
    ) from None


__all__ = ["check_head", "check_store", "check_times", "head_of", "refuse"]
