"""Checks of everything that is read from the manifest of a seed, which may be damaged, or written by somebody else.

Names of files are read and never written, and are no paths; counts become sizes of arrays.

Guarded by tests/panes/state/test_seed.py.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

from ...errors import StateMismatch
from ...windows.times import MAX_TIME
from ..watermarks.stored_watermarks import read_extra

_NAME = re.compile(r"[0-9a-f]{32}\.arrow")
_HEAD = {"seed", "steps", "maker", "positions", "corrects", "base", "shards"}
_STAGE = re.compile(r"[1-9][0-9]{0,5} of [1-9][0-9]{0,5}")
_COUNTS = {"dropped", "finished", "unassigned", "bad"}
_FILE = {"name", "store", "piece", "rows", "size", "check"}
_TIMES = ("watermark", "output_watermark", "processing_time")
_PIECE = {*_TIMES, "closed", "since", "percentiles", "counts", "marks"}
_LARGEST = 2**40
"""More rows or bytes than a file has."""


def checked(written: bytes, folder: str, format: int) -> dict[str, Any]:
    """The manifest of a seed; raises `StateMismatch` unless every value in it can be one of a seed."""
    try:
        head = json.loads(written)
        number = head["seed"]
        _require(_is_whole(number, 1, 2**31), "its format is no number")
        if number > format:
            raise StateMismatch(
                f"the seed {folder!r} has format {number}, and this version of uncombine reads those up to {format}: "
                "use the version of uncombine that wrote it, or a later one"
            )
        if number > 1 and head != with_check(head):
            raise _NoSeed("its parts are not those that were written together")
        if number < format:
            head = _as_later(head)
        head = {name: value for name, value in head.items() if name != "check"}
        _require(set(head) == _HEAD, "it has other parts")
        _require(head["shards"] is None or _is_whole(head["shards"], 1, 2**20), "its shards are no number")
        _require(isinstance(head["corrects"], bool), "it does not say what its table is")
        for maker in (head["maker"], *([] if head["base"] is None else [head["base"]])):
            _require(set(maker) == {"owner", "batch"} and isinstance(maker["owner"], str), "its maker is none")
            _require(_is_whole(maker["batch"], 0), "its maker has no batch")
        _require(_are_texts(head["positions"]), "its positions are no texts")
        _require(isinstance(head["steps"], list), "its steps are no list")
        names = set[str]()
        for step in head["steps"]:
            _check_step(step, names)
    except StateMismatch as error:
        raise StateMismatch(str(error).replace("the stored state of a shard", f"the seed {folder!r}")) from None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, _NoSeed) as error:
        reason = f" ({error})" if isinstance(error, _NoSeed) else ""
        raise StateMismatch(
            f"the manifest of the seed {folder!r} is damaged or was not written by this library{reason}: restore the "
            "seed from a copy"
        ) from None
    return dict(head)


def with_check(head: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest with a number that another manifest does not have, but for one that somebody made on purpose.

    >>> with_check({"seed": 2, "steps": []}) == with_check({"steps": [], "seed": 2, "check": 7})
    True
    """
    parts = {name: value for name, value in head.items() if name != "check"}
    text = json.dumps(parts, separators=(",", ":"), sort_keys=True)
    return {**parts, "check": zlib.crc32(text.encode())}


class _NoSeed(Exception):
    """The fault that makes a manifest none of a seed."""


def _as_later(head: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest of an earlier format: the first has no corrections, and the second no combiners that were added."""
    steps = [
        {"corrections": [], **step, "pieces": [{"closed": -MAX_TIME, "since": {}, **piece} for piece in step["pieces"]]}
        for step in head["steps"]
    ]
    return {"corrects": False, "base": None, "shards": None, **head, "steps": steps}


def _check_step(step: Mapping[str, Any], names: set[str]) -> None:
    _require(set(step) == {"made_by", "pieces", "files", "corrections"}, "a step has other parts")
    _require(bool(_STAGE.fullmatch(str(step["made_by"]["stage"]))), "a step has no place")
    pieces = step["pieces"]
    _require(isinstance(pieces, list) and 0 < len(pieces) < 2**20, "a step has no pieces")
    for piece in pieces:
        _check_piece(piece, step["made_by"])
    for file in (*step["files"], *step["corrections"]):
        _require(set(file) == _FILE and isinstance(file["store"], str), "a file has other parts")
        name = file["name"]
        _require(isinstance(name, str) and bool(_NAME.fullmatch(name)), "the name of a file is none")
        _require(name not in names, "a file is named twice")
        names.add(name)
        _require(_is_whole(file["piece"], 0, len(pieces) - 1), "a file is of no piece")
        _require(_is_whole(file["rows"], 0, _LARGEST) and _is_whole(file["size"], 0, _LARGEST), "a file has no size")
        _require(_is_whole(file["check"], 0, 2**32 - 1), "a file has no checksum")


def _check_piece(piece: Mapping[str, Any], made_by: Any) -> None:
    _require(set(piece) == _PIECE, "a piece has other parts")
    _require(all(_is_whole(piece[name], -MAX_TIME) for name in (*_TIMES, "closed")), "a piece has no times")
    for percent, time in piece["percentiles"]:
        _require(isinstance(percent, int | float) and 0 <= percent <= 100, "a percentile is none")
        _require(_is_whole(time, -MAX_TIME), "a percentile has no time")
    _require(isinstance(piece["since"], dict), "its combiners have no times")
    _require(all(_is_whole(time, -MAX_TIME) for time in piece["since"].values()), "a combiner has no time")
    counts = piece["counts"]
    _require(set(counts) == _COUNTS and all(_is_whole(one, 0) for one in counts.values()), "a piece has no counts")
    read_extra(json.dumps({"timer": None, **piece["marks"], "made_by": made_by}).encode())


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_whole(value: Any, least: int, most: int = MAX_TIME) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _require(right: bool, fault: str) -> None:
    if not right:
        raise _NoSeed(fault)


__all__ = ["checked", "with_check"]
