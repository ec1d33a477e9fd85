"""Debezium's messages in files of JSON, whose types come from the first of them."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch
from uncombine.flows import changelog_reading

DEBEZIUM = uc.changelog.Debezium()
ROW = pa.schema(
    {
        "id": pa.int64(),
        "ts": pa.int64(),
        "amount": pa.float64(),
        "note": pa.string(),
        "at": pa.struct({"city": pa.string(), "tags": pa.list_(pa.string())}),
    }
)
SEEN = "2024-05-01T00:00:00Z"


def write(path: Path, messages: list[dict[str, Any]], payload: bool) -> None:
    path.write_text("".join(json.dumps({"payload": one} if payload else one) + "\n" for one in messages))


def drawn(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Messages of the changes of a table, the first of which are new rows, and the rows that are left."""
    r = random.Random(seed)
    rows: dict[int, dict[str, Any]] = {}
    messages = list[dict[str, Any]]()

    def row(id: int) -> dict[str, Any]:
        note = None if len(messages) < 5 else r.choice([None, "a", "b"])  # a field that is null at first
        at = {"city": r.choice([None, "x", "y"]) if len(messages) != 2 else "z", "tags": r.choice([[], ["t"]])}
        amount = r.choice([1, 2.5, 7])
        return {"id": id, "ts": id * 1000, "amount": amount if messages else 1.5, "note": note, "at": at}

    def send(op: str, before: Any, after: Any) -> None:
        source = {"lsn": len(messages), "snapshot": None if len(messages) < 9 else r.choice([True, {"a": 1}, "last"])}
        transaction = None if len(messages) < 7 else {"id": "1", "order": 4}
        message = {"op": op, "before": before, "after": after, "source": source, "transaction": transaction}
        messages.append(message)

    for id in range(8):
        rows[id] = row(id)
        send("c", None, rows[id])
    for id in range(8, 40):
        kind = r.choice("cud")
        if kind == "c" or not rows:
            rows[id] = row(id)
            send("c", None, rows[id])
            continue
        one = r.choice(sorted(rows))
        old = rows.pop(one)
        if kind == "u":
            rows[one] = row(one)
        send(kind, old, rows.get(one))
    return messages, list(rows.values())


def left(flow: uc.Flow) -> Counter[str]:
    """The rows with their weights, those of weight 0 left out."""
    counts: Counter[str] = Counter()
    for row in flow.run().table().to_pylist():
        weight = row.pop("diff")
        counts[json.dumps(row, sort_keys=True, default=str)] += weight
    return Counter({row: count for row, count in counts.items() if count})


def as_read(rows: list[dict[str, Any]]) -> Counter[str]:
    floats = [{**row, "amount": float(row["amount"])} for row in rows]
    return Counter(json.dumps(row, sort_keys=True) for row in floats)


@pytest.mark.parametrize("payload", [False, True])
@pytest.mark.parametrize("seed", seeds(6, 60))
def test_files_that_begin_with_new_rows_alone(seed: int, payload: bool, tmp_path: Path) -> None:
    messages, rows = drawn(seed)
    if not payload:  # a run without a step reads all columns, and here these have values of several types
        messages = [{**one, "source": {"lsn": 1}, "transaction": None} for one in messages]
    write(tmp_path / "a.json", messages[:8], payload)
    write(tmp_path / "b.json", messages[8:], payload)
    flow = uc.flow(uc.Files(tmp_path), changelog=DEBEZIUM, time_format="us")
    assert left(flow.select("id", "ts", "amount", "note", "at", "diff")) == as_read(rows)


@pytest.mark.parametrize("seed", seeds(8, 60))
def test_messages_with_their_payload_and_without_it_are_in_one_folder(seed: int, tmp_path: Path) -> None:
    """A connector whose setting is changed writes both; also what is no envelope is counted."""
    messages, rows = drawn(seed)
    r = random.Random(seed)
    messages = [{**one, "source": {"lsn": 1}, "transaction": None} for one in messages]
    mixed = [{"schema": None, "payload": one} if r.random() < 0.5 else one for one in messages]
    others = [{"payload": {"foo": 1}}, {"payload": {"after": {"id": 1}}}]
    silent = [None, {"schema": None, "payload": None}]
    for _ in range(r.randrange(4)):
        mixed.insert(r.randrange(3, len(mixed)), r.choice([*others, *silent]))
    bad = sum(one in others for one in mixed)
    cut = r.randrange(1, len(mixed))
    for text in (False, True):
        write(tmp_path / "a.json", mixed[:cut], False)
        write(tmp_path / "b.json", mixed[cut:], False)
        files = uc.Files(tmp_path, format="text" if text else "json", on_bad_row="leave_out")
        changelog = uc.changelog.Debezium(schema=ROW) if text else DEBEZIUM
        if not text:  # the first lines tell the types
            (tmp_path / "a.json").write_text(
                json.dumps(messages[0]) + "\n" + json.dumps({"payload": messages[1]}) + "\n"
            )
            (tmp_path / "b.json").write_text("".join(json.dumps(one) + "\n" for one in mixed[2:]))
            bad = sum(one in others for one in mixed[2:])
            rest = [(one or {}).get("payload") or one for one in mixed[2:] if one not in (*others, *silent)]
            if rest != messages[2:]:
                continue  # one of the first two lines has moved
        flow = uc.flow(files, changelog=changelog, time_format="us").select("id", "ts", "amount", "note", "at", "diff")
        result = flow.run()
        assert (left(flow), result.counts()["bad"]) == (as_read(rows), bad)


@pytest.mark.parametrize("first", [False, True])
def test_a_first_file_of_one_form_and_a_second_one_of_the_other(first: bool, tmp_path: Path) -> None:
    messages, rows = drawn(3)
    messages = [{**one, "source": {"lsn": 1}, "transaction": None} for one in messages]
    write(tmp_path / "a.json", messages[:8], first)
    write(tmp_path / "b.json", messages[8:], not first)
    flow = uc.flow(uc.Files(tmp_path), changelog=DEBEZIUM, time_format="us")
    assert left(flow.select("id", "ts", "amount", "note", "at", "diff")) == as_read(rows)


def test_a_damaged_text_is_left_out_or_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line with the word null is a tombstone in a file."""
    monkeypatch.setattr(changelog_reading, "_told", count())
    good = {"op": "c", "before": None, "after": {"id": 1, "ts": 0, "amount": 1.5}}
    damaged = {"op": "c", "before": None, "after": {"id": 2, "ts": 0, "amount": "!!"}}
    (tmp_path / "a.json").write_text(f"{json.dumps(good)}\nnull\n{json.dumps(damaged)}\n")
    changelog = uc.changelog.Debezium(schema=ROW)
    left_out = uc.Files(tmp_path, format="text", on_bad_row="leave_out")
    result = uc.flow(left_out, changelog=changelog, time_format="us").window("1 day").combine(n=uc.Count()).run()
    assert (result["n"].to_pylist(), result.counts()["bad"]) == ([1], 1)
    assert "left out: a message that cannot be read" in caplog.text
    assert '"amount": "!!"' in caplog.text
    with pytest.raises(InvalidArgument, match=r'"!!".*; on_bad_row=\'leave_out\' of uc.Files leaves such messages out'):
        uc.flow(uc.Files(tmp_path, format="text"), changelog=changelog, time_format="us").run()
    with pytest.raises(InvalidArgument, match="on_bad_row= is for CSV and JSON"):
        uc.flow(left_out, time_format="us")


@pytest.mark.parametrize("payload", [False, True])
def test_files_that_begin_with_deletions_alone(payload: bool, tmp_path: Path) -> None:
    row = {"id": 1, "ts": 0, "note": "a"}
    write(tmp_path / "a.json", [{"op": "d", "before": row, "after": None}], payload)
    write(tmp_path / "b.json", [{"op": "c", "before": None, "after": {**row, "id": 2}}], payload)
    flow = uc.flow(uc.Files(tmp_path), changelog=DEBEZIUM, time_format="us")
    assert sorted((row["id"], row["diff"]) for row in flow.run().to_pylist()) == [(1, -1), (2, 1)]


def test_images_tell_each_other_types_of_fields(tmp_path: Path) -> None:
    """An old row lacks a field and has a text that looks like a time; the new one has whole numbers."""
    old = {"id": 1, "ts": 0, "x": 1.5, "said": "2024-05-01"}
    new = {"id": 1, "ts": 0, "x": 2, "said": "hello", "more": 3}
    write(tmp_path / "a.json", [{"op": "u", "before": old, "after": new}], False)
    write(tmp_path / "b.json", [{"op": "u", "before": {**new, "x": 2.5}, "after": {**new, "said": None}}], False)
    rows = uc.flow(uc.Files(tmp_path), changelog=DEBEZIUM, time_format="us").run().to_pylist()
    got = [(row["x"], row["said"], row["more"], row["diff"]) for row in rows]
    want = [(1.5, "2024-05-01", None, -1), (2.0, "hello", 3, 1), (2.5, "hello", 3, -1), (2.0, None, 3, 1)]
    assert got == want


def test_an_order_inside_a_message(tmp_path: Path) -> None:
    """Other fields of `source` may be null at first, and anything later."""
    row = {"id": 1, "ts": 0, "n": 1}
    sources = [{"lsn": 1, "txId": None}, {"lsn": 2, "txId": {"x": 1}}, {"lsn": 3, "txId": "a"}]
    for payload in (False, True):
        for place, source in enumerate(sources):
            message = {"op": "u", "before": None, "after": {**row, "n": place}, "source": source}
            write(tmp_path / f"{place}.json", [message], payload)
        changelog = uc.changelog.Debezium(keys="id", order="source.lsn")
        rows = uc.flow(uc.Files(tmp_path), changelog=changelog, time_format="us").run().to_pylist()
        assert sum(row["diff"] for row in rows) == 1
        assert sum(row["n"] * row["diff"] for row in rows) == 2


def test_no_image_is_known(tmp_path: Path) -> None:
    write(tmp_path / "a.json", [{"op": "m", "before": None, "after": None}], False)
    with pytest.raises(TypeMismatch, match="before and after must be structs"):
        uc.flow(uc.Files(tmp_path), changelog=DEBEZIUM)


def test_a_replay_refuses_a_column_without_a_type(tmp_path: Path) -> None:
    """Rows with another value than a text would be left out, so a column that is read must have a type."""
    one, two = {"ts": SEEN, "n": 1, "key": None, "at": {"x": None}}, {"ts": SEEN, "n": 2, "key": 7, "at": {"x": 3}}
    (tmp_path / "a.json").write_text(json.dumps(one) + "\n")
    (tmp_path / "b.json").write_text(json.dumps(two) + "\n")
    options = {"watermark": "1 hour", "processing_time": "ts"}
    events = uc.flow(uc.Files(tmp_path), **options).replay(close_at_end=True).window("1 day")
    assert events.combine(n=uc.Sum("n")).run()["n"].to_pylist() == [3]  # the others are not read
    for by in ("key", "at"):
        with pytest.raises(InvalidArgument, match=f"{by!r}|'at.x' is null in all rows.*give uc.Files.. schema="):
            events.combine(by=by, n=uc.Sum("n")).run()
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "n": pa.int64(), "key": pa.int64()})
    typed = uc.flow(uc.Files(tmp_path, schema=schema), **options).replay(close_at_end=True).window("1 day")
    assert sorted(typed.combine(by="key", n=uc.Sum("n")).run()["n"].to_pylist()) == [1, 2]


def test_a_replay_refuses_a_field_of_a_row_without_a_type(tmp_path: Path) -> None:
    row = {"id": 1, "ts": 0, "note": None}
    write(tmp_path / "a.json", [{"op": "c", "before": None, "after": row, "seen": SEEN}], False)
    options = {"time_format": "us", "watermark": "1 hour", "processing_time": "seen"}
    flow = uc.flow(uc.Files(tmp_path), changelog=DEBEZIUM, **options).replay()
    with pytest.raises(InvalidArgument, match=r"'(before|after)\.note' is null in all rows"):
        flow.window("1 day").combine(n=uc.Count()).run()


def test_a_history_is_read_as_the_stream_is(tmp_path: Path) -> None:
    row = {"id": 1, "ts": 0, "n": 1.5}
    now, past = tmp_path / "now", tmp_path / "past"
    now.mkdir()
    past.mkdir()
    write(now / "a.json", [{"op": "u", "before": {**row, "note": "a"}, "after": {**row, "note": "b"}}], True)
    write(past / "a.json", [{"op": "c", "before": None, "after": {**row, "n": 1, "note": None}}], True)
    write(past / "b.json", [{"op": "d", "before": {**row, "n": 1, "note": "x"}, "after": None}], True)
    flow = uc.flow(uc.Files(now), changelog=DEBEZIUM, time_format="us", watermark="1 hour")
    sums = flow.window("1 day", "each row").combine(n=uc.Sum("n"), rows=uc.Count())
    seed = sums.seed(uc.Files(past), to=f"{tmp_path}/seed")
    assert seed.steps
