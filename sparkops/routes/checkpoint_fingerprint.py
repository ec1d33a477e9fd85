"""The fingerprint of a pipeline, stored with its state, and a text of the differences from a later one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from ...panes.stage import Stage

Fingerprint: TypeAlias = Mapping[str, Any]


def fingerprint(
    stage: Stage,
    schemas: Sequence[pa.Schema],
    number: int,
    stages: int,
    shards: int,
    whole_keys: bool,
    near: int,
    inputs: Sequence[str] = (),
) -> Fingerprint:
    """The parts of a pipeline on which its state depends, as values for JSON.

    Keys, combiners and inputs are lists, since the state has them by place. A flow of one source does not name it.
    """
    return {
        **({"inputs": list(inputs)} if inputs else {}),
        "stage": f"{number} of {stages}",
        "shards": shards,
        "whole_keys": whole_keys,
        **({"near": near} if near and not whole_keys else {}),
        **{name: _stable(value) for name, value in stage.kept(*schemas).items()},
    }


def _stable(value: Any) -> Any:
    """Texts without the addresses of objects, which differ from run to run."""
    return [_stable(part) for part in value] if isinstance(value, list) else re.sub(r" at 0x[0-9a-f]+", "", value)


def differences(stored: Fingerprint, now: Fingerprint) -> str | None:
    """A sentence that names the differences; None if the pipeline can continue from the state."""
    names = [name for name in {**now, **stored} if stored.get(name) != now.get(name)]
    if not names:
        return None
    if len(names) > 1 and "near" in names:
        names.remove("near")  # it follows from the window, the keys and the combiners
    changed = [_difference(name, stored.get(name), now.get(name)) for name in names]
    where = f"stage {now['stage']}"
    return (
        f"the checkpoint was written by another pipeline, in {where}: {'; '.join(changed)}; "
        "go on with the pipeline as it was, or start the changed one from a new checkpoint"
    )


def _difference(name: str, stored: Any, now: Any) -> str:
    match name:
        case "combiners":
            return _combiners(dict(stored), dict(now))
        case "shards":
            return f"it had shards={stored} and has shards={now} (from shards= or spark.sql.shuffle.partitions)"
        case "whole_keys":
            held = {True: "all windows of a key in one shard", False: "windows of a key in several shards"}
            return f"it kept {held[stored]} and keeps {held[now]} (late='emit', rows left out, or processing_time=)"
        case "near":
            spans = [f"that start within {span or 0} microseconds" for span in (stored, now)]
            return f"it kept windows of a key in one shard {spans[0]}, and keeps those {spans[1]} (another version)"
        case "inputs":
            return f"its inputs were {_inputs(stored)}, and are {_inputs(now)}"
        case "by":
            return f"it was by {_keys(stored)} and is by {_keys(now)}"
        case _:
            return f"{name} was {stored} and is {now}"


def _combiners(stored: Mapping[str, str], now: Mapping[str, str]) -> str:
    added = [f"{key}={now[key]}" for key in now if key not in stored]
    removed = [f"{key}={stored[key]}" for key in stored if key not in now]
    changes = []
    if added:
        changes.append(f"{', '.join(added)} was added, and the state lacks it for earlier rows")
    if removed:
        changes.append(f"{', '.join(removed)} was removed")
    changes += [f"{key}={stored[key]} is now {now[key]}" for key in now if stored.get(key, now[key]) != now[key]]
    return "; ".join(changes) or f"the combiners were in the order {list(stored)} and are in {list(now)}"


def _inputs(names: Sequence[str] | None) -> str:
    return ", ".join(names) if names else "one source alone"


def _keys(by: Any) -> str:
    return "(" + ", ".join(f"{name}: {kind}" for name, kind in by) + ")"
