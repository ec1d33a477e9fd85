"""Rows that steps leave out, in runs of this process: each with its step and the reason."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.flows.left_out import LeftOut, beside, fields_of
from uncombine.panes.grouping.grouping import Grouping
from uncombine.panes.grouping.operator import Operator
from uncombine.panes.shard.arrivals import Arrival
from uncombine.panes.shard.shard import Shard

SECOND = 1_000_000
TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64()})
MINUTE = uc.Fixed("1 minute")


def rows(*given: tuple[int | None, str, int]) -> uc.Elements:
    """Rows of a second, a key and a value."""
    return uc.Elements([{"ts": None if t is None else t * SECOND, "k": k, "x": x} for t, k, x in given])


def left_out(result: Any) -> list[tuple[Any, ...]]:
    """Stage, reason, the fields of the row that are not null, and the entry of the script."""
    return [
        (row["stage"], row["why"], {n: v for n, v in row["row"].items() if v is not None}["x"], row["step"])
        for row in result.left_out.to_pylist()
    ]


def test_rule_66_each_reason() -> None:
    flow = uc.flow(SCHEMA).window(uc.Sliding("10 seconds", "1 minute"), trigger=uc.AfterCount(1), allow_finish=True)
    script = [
        rows((5, "a", 1), (None, "a", 2), (30, "a", 3)),
        rows((6, "a", 4)),
        uc.Watermark(100 * SECOND),
        rows((7, "a", 5)),
    ]
    result = flow.combine(by="k", n=uc.Count()).run(script)
    assert left_out(result) == [(1, "bad", 2, 0), (1, "unassigned", 3, 0), (1, "finished", 4, 1), (1, "late", 5, 3)]
    assert result.counts() == {"dropped": 1, "finished": 1, "unassigned": 1, "bad": 1, "unreadable": 0, "held": 0}


def test_rule_66_a_late_row_has_the_watermark_from_before_it() -> None:
    flow = uc.flow(SCHEMA, watermark="10 seconds").window(MINUTE, allowed_lateness="20 seconds")
    script = [rows((5, "a", 1), (None, "a", 2)), rows((100, "a", 3)), rows((30, "a", 4), (130, "a", 5))]
    found = flow.combine(n=uc.Count()).run(script).left_out.select(["why", "watermark"]).to_pylist()
    late = datetime(1970, 1, 1, 0, 1, 30, tzinfo=UTC)
    assert found == [{"why": "bad", "watermark": None}, {"why": "late", "watermark": late}]


def test_rule_66_a_row_of_several_windows_is_left_out_once() -> None:
    flow = uc.flow(SCHEMA).window(uc.Sliding("1 minute", "20 seconds")).combine(n=uc.Count())
    result = flow.run([uc.Watermark(200 * SECOND), rows((50, "a", 1))])
    assert left_out(result) == [(1, "late", 1, 1)]
    assert result.dropped == 3


def test_rule_66_late_rows_with_a_window_of_their_own_are_not_left_out() -> None:
    flow = uc.flow(SCHEMA).window(MINUTE, late="duplicate").combine(n=uc.Count())
    result = flow.run([uc.Watermark(200 * SECOND), rows((50, "a", 1))])
    assert (result.dropped, result["n"].to_pylist(), result.left_out.num_rows) == (1, [1], 0)


def test_rule_66_rows_of_every_stage_have_one_struct() -> None:
    first = uc.flow(SCHEMA).window(MINUTE, trigger=uc.Repeatedly(uc.AfterCount(1)), mode="discarding")
    per_key = first.combine(by="k", x=uc.Count()).with_columns(k=uc.col("x"))
    flow = per_key.window(uc.Sliding("10 seconds", "1 minute")).combine(by="k", n=uc.Sum("x"))
    result = flow.run([rows((5, "a", 7)), rows((None, "b", 8))])
    kind = result.left_out.schema.field("row").type
    assert [kind.field(i).name for i in range(5)] == ["ts", "k", "x", "k_2", "window"]
    assert (kind.field("k").type, kind.field("k_2").type) == (pa.string(), pa.int64())
    second, bad = result.left_out.to_pylist()
    assert (second["stage"], second["why"], second["row"]["k"], second["row"]["k_2"]) == (2, "unassigned", None, 1)
    assert (bad["stage"], bad["why"], bad["row"]["k"], bad["row"]["k_2"]) == (1, "bad", "b", None)


@pytest.mark.parametrize("step", ["distinct", "in_order", "process", "remember"])
def test_rule_66_steps_over_single_rows(step: str) -> None:
    source = uc.flow(SCHEMA)

    class Nothing:
        state = pa.schema({"n": pa.int64()})
        output = pa.schema({"y": pa.int64()})

        def on_row(self, row: Any, state: Any, ctx: Any) -> None: ...

    flow = {
        "distinct": lambda: source.distinct("k", within="1 minute"),
        "in_order": lambda: source.in_order(by="k"),
        "process": lambda: source.process(by="k", function=Nothing()),
        "remember": lambda: source.map(lambda table: table, remember=True),
    }[step]()
    result = flow.run([uc.Watermark(100 * SECOND), rows((5, "a", 1), (None, "a", 2))])
    assert left_out(result) == [(1, "late", 1, 1), (1, "bad", 2, 1)]


def test_rule_66_sides_of_a_join() -> None:
    left, right = (uc.flow(SCHEMA, name=name) for name in ("left", "right"))
    flow = left.join(right, on="k", within=("0 s", "10 s"))
    script = [
        *(uc.Watermark(100 * SECOND, input=name) for name in ("left", "right")),
        uc.Elements([{"ts": 1, "k": "a", "x": 1}, {"ts": 100 * SECOND, "k": None, "x": 2}], input="left"),
        uc.Elements([{"ts": None, "k": "a", "x": 3}, {"ts": 2, "k": "a", "x": 4}], input="right"),
    ]
    result = flow.run(script)
    found = [(row["side"], row["why"], row["row"]["x"]) for row in result.left_out.to_pylist()]
    assert found == [("left", "late", 1), ("right", "late", 4), ("right", "bad", 3)]
    late = [row["row"] for row in result.left_out.to_pylist() if row["why"] == "late"]
    assert [(row["k"], uc.timestamp(row["ts"])) for row in late] == [("a", 1), ("a", 2)]


def test_a_flow_without_steps_leaves_nothing_out() -> None:
    result = uc.flow(SCHEMA).run([rows((None, "a", 1))])
    assert (result.num_rows, result.left_out.num_rows) == (1, 0)


def test_cells_name_no_rows() -> None:
    """Rows that were combined on their way cannot be told apart any more."""
    operator = Operator(Grouping({"n": uc.Count()}, MINUTE), SCHEMA)
    shard = Shard.start(operator)
    given = pa.table({"ts": [1, None], "k": ["a", "b"], "x": [1, 2]}).cast(SCHEMA)
    shard, played = shard.take(0, Arrival([given]))
    assert [played[-1].left_out(why)[0]["x"].to_pylist() for why in ("bad", "late")] == [[2], []]
    shard, played = shard.take(1, Arrival([given.slice(0, 1)]))
    assert played[-1].left_out("bad") == []


def test_the_form_of_rows_beside_a_result() -> None:
    kind, names = fields_of(
        [(1, [SCHEMA]), (2, [SCHEMA.append(pa.field("n", pa.int32())).set(2, pa.field("x", TIME))])]
    )
    assert [field.name for field in kind] == ["ts", "k", "x", "x_2", "n"]
    assert names[1] == [{"ts": "ts", "k": "k", "x": "x_2", "n": "n"}]
    form = LeftOut(2, (None,), tuple(names[1]), kind)
    both = beside(pa.table({"n": [1, 2]}), form.schema.empty_table())
    assert both.schema.names == ["n", "left_out"]
    assert both["left_out"].to_pylist() == [None, None]


def test_rule_66_two_columns_of_a_row_never_share_a_field() -> None:
    left = uc.flow(pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64()}), name="left")
    texts = {"x": pa.string(), "x_1": pa.string(), "X_1_1": pa.string()}
    right = uc.flow(pa.schema({"ts": TIME, "k": pa.string(), **texts}), name="right")
    flow = left.join(right, on="k", within=("0 s", "10 s"))
    row = {"ts": None, "k": "a", "x": "one", "x_1": "two", "X_1_1": "three"}
    kept = flow.run([uc.Elements([row], input="right")]).left_out["row"].to_pylist()[0]
    assert kept == {"ts": None, "k": "a", "x": None, "x_1": "two", "X_1_1": "three", "x_1_1_1": "one"}


def test_rows_of_two_inputs_are_one_table() -> None:
    """Also where the right input has other columns, and where one has no rows at all."""
    both = {"left": SCHEMA, "right": SCHEMA.remove(2).append(pa.field("y", pa.string()))}
    left, right = (uc.flow(schema, name=name) for name, schema in both.items())
    flow = left.join(right, on="k", within=("0 s", "10 s"))
    after = [uc.Watermark(100 * SECOND, input=name) for name in both]
    late = uc.Elements([{"ts": 1, "k": "a", "x": 1}], input="left")
    [row] = flow.run([*after, late]).left_out.to_pylist()
    assert (row["side"], row["why"], row["row"]["x"], row["row"]["y"]) == ("left", "late", 1, None)
    nothing = flow.run(after).left_out
    names = ["stage", "side", "why", "row", "watermark", "file", "line", "text", "cause", "step"]
    assert (nothing.num_rows, nothing.schema.names) == (0, names)


def test_a_local_flow_has_its_rows_in_the_result() -> None:
    flow = uc.flow(SCHEMA).window(MINUTE).combine(n=uc.Count())
    with pytest.raises(InvalidArgument, match=r"write flow.run\(script\).left_out"):
        flow.left_out
    with pytest.raises(InvalidArgument, match="has no stream to write"):
        flow.foreach_batch(lambda panes, rows, number: None)
