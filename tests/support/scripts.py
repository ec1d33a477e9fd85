"""Random scripts for a stream and for a replay, and what the local runner gives for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from opened import run_script
from reference.byrule.agree import combiners_of, with_tables
from reference.byrule.transcripts import SCHEMA
from reference.transcripts import transcript
from streams import timed

import uncombine as uc


def scripted(seed: int) -> tuple[list[Any], dict[str, Any]]:
    """A random script whose entries all have a time, and the options of its grouping."""
    script, options = transcript(seed)
    return timed(with_tables(script)), options


def locally(script: list[Any], options: dict[str, Any]) -> pa.Table:
    return run_script(script, **options, **combiners_of(options), schema=SCHEMA)


def apart(script: list[Any]) -> list[Any]:
    """The entries each at an instant of its own, one microsecond after the other if they were at the same."""
    out: list[Any] = []
    now = 0
    for entry in script:
        now = max(now + 1, entry.t if isinstance(entry, uc.Clock) else entry.at)
        out.append(uc.Clock(now) if isinstance(entry, uc.Clock) else replace(entry, at=now))
    return out
