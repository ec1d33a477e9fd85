"""The folder of a seed: what is damaged or malicious in it is an error of ours, or makes no difference."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch, UncombineError
from uncombine.panes.state.operator_state import Counts
from uncombine.panes.state.seed import Seed, read_seed
from uncombine.panes.state.seed_checks import with_check
from uncombine.panes.state.shard_seed import numbers

ODD = [None, True, -1, 2**70, 1.5, "", "x", "../" * 5 + "etc/passwd", [], [[]], {}, {"a": 1}]


def flow() -> uc.Flow:
    rows = uc.flow(
        pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.int64()}), watermark="1 minute"
    )
    sums = rows.window("1 hour", "each row", mode="retracting").combine(by="k", n=uc.Sum("x"), m=uc.Median("x"))
    return sums.window("1 day").combine(most=uc.Max("n"))


def entry(at: int) -> uc.Elements:
    return uc.Elements([{"ts": at + i, "k": "ab"[i % 2], "x": i} for i in range(5)])


@pytest.fixture
def seed(tmp_path: Path) -> Seed:
    return flow().run([entry(0)]).seed(str(tmp_path / "seed"))


def rest(seed: Seed | str) -> list[dict[str, Any]]:
    return flow().run([entry(7), uc.Watermark(None)], start=seed).to_pylist()


def test_a_seed_is_read_as_it_was_written(seed: Seed) -> None:
    found = read_seed(seed.folder)
    assert found.steps == seed.steps
    assert rest(seed) == rest(seed.folder)
    assert [step.rows for step in found.steps] == [{"windows": 2}, {"windows": 1}]
    assert repr(found).endswith(f": step 1: 2 windows; step 2: 1 windows; {found.bytes:,} bytes)")
    assert found.bytes == sum(file.stat().st_size for file in Path(seed.folder).glob("*.arrow"))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all values in JSON."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, part in inner for place in places(part, (*path, name)))]


@pytest.mark.weekly
@pytest.mark.parametrize("part", range(4))
def test_a_damaged_manifest_is_refused_or_makes_no_difference(seed: Seed, part: int) -> None:
    """Any value of it is replaced by another one: the outcome is that of the whole seed, or an error of ours."""
    r, manifest = random.Random(part), Path(seed.folder, "seed.json")
    written, expected = manifest.read_text(), rest(seed)
    before = set(Path(seed.folder).parent.rglob("*"))
    refused = 0
    for _ in range(60):
        damaged = json.loads(written)
        *way, last = r.choice([place for place in places(damaged) if place])
        inside = damaged
        for name in way:
            inside = inside[name]
        inside[last] = r.choice(ODD)
        manifest.write_text(json.dumps(damaged))
        if damaged != json.loads(written) and damaged["seed"] != 1:
            with pytest.raises(UncombineError):
                read_seed(seed.folder)
        manifest.write_text(json.dumps(with_check(damaged)))  # as somebody may on purpose
        try:
            found = rest(seed.folder)
        except UncombineError:
            refused += 1
        else:
            free = {"made_by", "counts", "processing_time", "positions", "percentiles", "marks", "watermark"}
            free |= {"closed", "shards", "base", "corrects", "files", "corrections", "since"}
            assert found == expected or free & {*way, last}
    assert refused > 30
    assert set(Path(seed.folder).parent.rglob("*")) == before


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"seed":1}', '{"seed":"1","steps":[],"positions":[]}', "[" * 9_000]
)
def test_a_manifest_that_is_none(seed: Seed, text: str) -> None:
    Path(seed.folder, "seed.json").write_text(text)
    with pytest.raises(StateMismatch, match="the manifest of the seed"):
        read_seed(seed.folder)


@pytest.mark.parametrize("damage", ["cut", "a bit", "gone", "of another file"])
def test_a_damaged_file_is_refused(seed: Seed, damage: str) -> None:
    first, second, *_ = sorted(Path(seed.folder).glob("*.arrow"))
    value = first.read_bytes()
    if damage == "gone":
        first.unlink()
    elif damage == "of another file":
        first.write_bytes(second.read_bytes())
    else:
        first.write_bytes(value[:-9] if damage == "cut" else bytes([value[0] ^ 1]) + value[1:])
    with pytest.raises(StateMismatch, match=f"{first.name}.*restore it from a copy"):
        rest(seed)


def test_a_folder_without_a_manifest_is_no_seed(seed: Seed, tmp_path: Path) -> None:
    Path(seed.folder, "seed.json").unlink()
    with pytest.raises(InvalidArgument, match="is no seed: it has no file"):
        read_seed(seed.folder)
    with pytest.raises(InvalidArgument, match="is not empty: give another one"):
        flow().run([entry(0)]).seed(seed.folder)
    with pytest.raises(InvalidArgument, match="is no seed"):
        flow().run([entry(0)], start=str(tmp_path / "nowhere"))


def test_of_several_pieces_the_furthest_clocks_count_and_the_least_promise(seed: Seed) -> None:
    piece = seed.steps[0].pieces[0]
    pieces = [
        replace(piece, watermark=5, output_watermark=4, percentiles=((50.0, 9),), counts=Counts(dropped=1)),
        replace(piece, watermark=7, output_watermark=2, percentiles=((50.0, 8),), counts=Counts(dropped=2)),
    ]
    assert numbers(pieces, 1, 2) == pieces[1]
    first, last = numbers(pieces, 0, 3), numbers(pieces, 2, 3)
    assert (first.watermark, first.output_watermark, first.percentiles) == (7, 2, ((50.0, 9),))
    assert (first.counts, last.counts) == (Counts(dropped=3), Counts())
