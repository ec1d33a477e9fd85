"""Messages that nobody should send: each is a bad row of its own, and the messages beside it stay as they are."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import hostile_json
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hostile_json import (
    PLAIN,
    ROW,
    damaged,
    drawn_object,
    drawn_value,
    good_row,
    postgres_row,
    spoilt_fields,
    spoilt_row,
)
from seeds import seeds

import uncombine as uc
from uncombine.changelogs import Changelog

c = uc.changelog
COUNT = 60
SEEDS = seeds(6, 180)


def envelope(r: random.Random, row: str) -> str:
    op = r.choice(['"c"'] * 4 + ['"r"', '"u"', '"d"', '"m"', '"t"', drawn_value(r, 1)])
    text = f'{{"op":{op},"before":{r.choice(["null", row])},"after":{r.choice([row, row, drawn_value(r)])},'
    text += f'"source":{r.choice([f"""{{"lsn":{r.randrange(9)}}}""", drawn_value(r)])}}}'
    return text if r.random() < 0.8 else f'{{"schema":{drawn_value(r)},"payload":{text}}}'


def pairs(r: random.Random) -> str:
    """The list of names and values of wal2json."""
    fields = spoilt_fields(r, postgres_row(r))
    return "[" + ",".join(f'{{"name":{json.dumps(n)},"type":"any","value":{text}}}' for n, text in fields) + "]"


def second_format(r: random.Random, row: str) -> str:
    action = r.choice(['"I"'] * 5 + ['"U"', '"D"', '"B"', '"T"', drawn_value(r, 1)])
    lists = [f'"{name}":{r.choice([pairs(r), pairs(r), drawn_value(r)])}' for name in ("columns", "identity")]
    both = ",".join([*lists[: r.choice([0, 1, 2, 2])], '"schema":"s"'])
    return f'{{"action":{action},{both},"table":"t"}}'


def first_format(r: random.Random, row: str) -> str:
    names, values = zip(*spoilt_fields(r, postgres_row(r)), strict=True)
    both = json.dumps(names), f"[{','.join(values)}]"
    kind = r.choice(['"insert"'] * 4 + ['"update"', '"delete"', '""', "[]", drawn_value(r, 1)])
    change = f'{{"kind":{kind},"table":"t","columnnames":{both[0]},"columnvalues":{r.choice([both[1], both[1], row])},'
    keys = f'{{"keynames":{both[0]},"keyvalues":{both[1]}}}'
    change += f'"oldkeys":{r.choice([drawn_value(r), keys, keys])}}}'
    return f'{{"change":{r.choice([f"[{change}]", f"[{change},{change}]", drawn_value(r)])}}}'


Write = Callable[[random.Random, str], str]
FORMS: dict[str, tuple[Changelog, str, Write]] = {
    "debezium": (c.Debezium(schema=ROW, truncate="bad"), "value", envelope),
    "debezium at once": (c.Debezium(schema=PLAIN, truncate="bad"), "value", envelope),
    "debezium keyed": (c.Debezium("id", order="source.lsn", schema=PLAIN, truncate="bad"), "value", envelope),
    "kafka": (c.KafkaUpsert("id", schema=PLAIN), "value", lambda r, row: row),
    "kafka, times as keys": (c.KafkaUpsert("ts", schema=ROW), "value", lambda r, row: row),
    "wal2json": (
        c.Postgres(ROW, truncate="bad"),
        "data",
        lambda r, row: r.choice([first_format, second_format])(r, row),
    ),
    "wal2json keyed": (c.Postgres(PLAIN, keys="id", truncate="bad"), "data", second_format),
}
KEYS = [
    "a",
    "7",
    '"a"',
    '"2016-01-20T12:00:00Z"',
    "2016-01-20 12:00:00",
    '{"id":"a"}',
    '{"ts":5}',
    '{"id":1',
    "{",
    '1,"x":2',
]


def messages(r: random.Random, name: str) -> tuple[pa.Table, list[bool]]:
    """Messages of which some are good, as a column of texts or bytes, and a flag of those that are surely good."""
    _, column, write = FORMS[name]
    texts, sure = list[bytes | None](), list[bool]()
    for _ in range(COUNT):
        fate = r.random()
        sure.append(fate < 0.3)
        if sure[-1]:
            texts.append(good(name, r).encode())
        elif fate < 0.33:
            texts.append(None)
        elif fate < 0.9:
            texts.append(damaged(r, write(r, spoilt_row(r))))
        else:
            texts.append(
                damaged(r, r.choice([drawn_value(r), drawn_object(r, ["op", "after", "action", "change", "id"])]))
            )
    kind = r.choice([pa.binary(), pa.string(), pa.large_binary()])
    values = pa.array(texts, pa.binary())
    table = {column: values.view(kind) if pa.types.is_string(kind) else values.cast(kind)}
    if name.startswith("kafka"):
        keys = [None if r.random() < 0.05 else damaged(r, r.choice(KEYS)) for _ in texts]
        good_key = "2016-01-20T12:00:00Z" if "times" in name else r.choice(["a", '{"id":"a"}'])
        keys = [good_key.encode() if here else key for key, here in zip(keys, sure, strict=True)]
        table["key"] = pa.array(keys, pa.binary()).view(r.choice([pa.binary(), pa.string()]))
    return pa.table(table), sure


def good(name: str, r: random.Random) -> str:
    row = good_row(r)
    if name.startswith("debezium"):
        return json.dumps({"op": "c", "before": None, "after": row, "source": {"lsn": 1}})
    if name.startswith("kafka"):
        return json.dumps({n: v for n, v in row.items() if n not in ("id", "ts") or n not in FORMS[name][0].keys})  # type: ignore[attr-defined]
    return json.dumps({"action": "I", "columns": [{"name": n, "value": v} for n, v in postgres_row(r).items()]})


def plain(column: Any) -> list[Any]:
    """The values as they are stored: times as numbers, since Python lacks most, and fractions to the last bit."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    valid = column.is_valid().to_pylist()
    if pa.types.is_struct(column.type):
        parts = [plain(pc.struct_field(column, f.name)) for f in column.type]
        return [row if there else None for row, there in zip(zip(*parts, strict=True), valid, strict=True)]
    if pa.types.is_map(column.type):
        return [(plain(one.values.field(0)), plain(one.values.field(1))) if one.is_valid else None for one in column]
    if pa.types.is_list(column.type):
        return [plain(one.values) if one.is_valid else None for one in column]
    if pa.types.is_temporal(column.type):
        return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64()).to_pylist()
    return [repr(value) for value in column.to_pylist()]


def changes(changelog: Changelog, table: pa.Table) -> list[list[Any]]:
    """The rows of each message, with their weights; 0 is a bad one."""
    reading = changelog.reading(table.schema)
    found = reading.changes(table, reading.row.names)
    found.rows.validate(full=True)
    assert bool(found.fault) == (0 in found.weights)
    assert found.fault.isprintable()
    out: list[list[Any]] = [[] for _ in range(table.num_rows)]
    columns = [plain(column) for column in found.rows.columns]
    for place, weight, *row in zip(found.places.tolist(), found.weights.tolist(), *columns, strict=True):
        out[place].append((weight, row if weight else None))
    return out


@pytest.mark.weekly
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_rule_64_each_message_is_judged_by_itself(name: str, seed: int) -> None:
    r = random.Random(f"{name} {seed}")
    table, sure = messages(r, name)
    together = changes(FORMS[name][0], table)
    for place, here in enumerate(sure):
        alone = changes(FORMS[name][0], table.slice(place, 1))[0]
        assert together[place] == alone, table.slice(place, 1).to_pydict()
        assert not here or [weight for weight, _ in alone] == [1], table.slice(place, 1).to_pydict()


@pytest.mark.weekly
@pytest.mark.parametrize("name", [name for name in FORMS if not name.startswith("kafka")])
def test_rule_64_a_text_that_python_does_not_read_is_bad(name: str) -> None:
    changelog, column, write = FORMS[name]
    r, seen = random.Random(name), 0
    for _ in range(150):
        raw = damaged(r, write(r, spoilt_row(r)))
        try:
            json.loads(raw.decode().removeprefix("\ufeff"))
        except RecursionError:
            continue
        except UnicodeDecodeError:
            if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):  # UTF-16, which Python reads
                continue
        except json.JSONDecodeError:
            if b"\0" in raw:
                continue
        except ValueError:  # a number of 5,000 digits
            continue
        else:
            continue
        seen += 1
        assert changes(changelog, pa.table({column: [raw]})) == [[(0, None)]], raw
    assert seen > 20


POISON = {
    "nested 1,000 deep": '{"z": ' + "[" * 1000 + "]" * 1000 + ", %s",
    "nested 100,000 deep": '{"z": ' + '{"a":' * 100_000 + "1" + "}" * 100_000 + ", %s",
    "half a surrogate pair": '{"id": "\\ud800", %s',
    "5,000 digits": '{"k": ' + "9" * 5000 + ", %s",
}
"""The rest of a message is put in place of %s."""


@pytest.mark.weekly
@pytest.mark.parametrize("name", POISON)
@pytest.mark.parametrize("form", FORMS)
def test_one_message_does_not_stop_a_flow(name: str, form: str) -> None:
    """It is one bad row among good ones, in a run with a step that counts it."""
    changelog, column, _ = FORMS[form]
    r = random.Random(form)
    texts = [good(form, r) for _ in range(3)]
    row = {n: v for n, v in good_row(r).items() if n not in ("id", "k")}
    bad = POISON[name].replace("%s", json.dumps(row)[1:])
    if form.startswith("debezium"):
        bad = f'{{"op":"c","before":null,"source":{{"lsn":1}},"after":{bad}}}'
    elif form.startswith("wal2json"):
        value = POISON[name].partition(": ")[2].removesuffix(", %s")
        bad = f'{{"action":"I","columns":[{{"name":"id","value":{value}}},{{"name":"k","value":"x"}}]}}'
    table = {column: [*texts[:1], bad, *texts[1:]]}
    if form.startswith("kafka"):
        table["key"] = ["2016-01-20T12:00:00Z" if "times" in form else "a"] * 4
        if name == "half a surrogate pair" and "times" not in form:
            table["key"][1] = bad  # the key wins over the value
    feed = uc.flow(pa.table(table).schema, changelog=changelog)
    flow = feed.window(uc.Global()).combine(n=uc.Count())
    run = flow.run([uc.Elements(pa.table(table)), uc.Watermark(None)])
    assert run.counts()["bad"] == 1
    keys = {json.loads(text)["after"]["id"] for text in texts} if form == "debezium keyed" else set("a")
    keys = {json.loads(text)["columns"][1]["value"] for text in texts} if form == "wal2json keyed" else keys
    assert run["n"].to_pylist()[-1:] == ([len(keys)] if form.startswith("kafka") or "keyed" in form else [3])


def test_the_grammar_draws_all_kinds_of_texts() -> None:
    r = random.Random(1)
    drawn = b"\n".join(damaged(r, spoilt_row(r)) for _ in range(2000)).decode(errors="replace")
    for text in ("[" * 1000, "\\ud800", "9" * 5000, "NaN", "\ufffd", "\ufeff", *hostile_json.BARE):
        assert text in drawn
