"""Changes of flows, each as a pair: the flow that wrote a checkpoint, the changed one, and what a restart must say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import uncombine as uc

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "k": pa.string(),
        "j": pa.string(),
        "v": pa.int64(),
        "d": pa.int64(),
        "ts": pa.timestamp("us", "UTC"),
        "at": pa.timestamp("us", "UTC"),
        "gap": pa.duration("us"),
    }
)

Source = Callable[..., Any]
"""Gives a streaming flow over rows of `SCHEMA`, read with these settings: `time`, `diff`, `shards`, and `schema`."""

Made = Callable[[Source], Any]

ON = "goes on"


@dataclass(frozen=True)
class Pair:
    """A flow and a changed one, and the words of the refusal; or `ON` if the changed one goes on."""

    before: Made
    after: Made
    told: str
    same: tuple[str, ...] = ()
    """The steps that `same=` may name, after which it goes on too."""


def again(mode: str = "retracting") -> dict[str, Any]:
    """The options of a grouping whose panes are shown again."""
    return {"trigger": uc.AfterWatermark(early=uc.AfterCount(1)), "mode": mode}


def counted(rows: Any, by: Any = "k", window: Any = None, **options: Any) -> Any:
    """A grouping of rows."""
    combiners = {"n": uc.Count(), "total": uc.Sum("v")}
    combiners |= {name: options.pop(name) for name in list(options) if isinstance(options[name], uc.Combiner)}
    return rows.window(window or uc.Fixed("1 minute"), **options).combine(by=by, **combiners)


def regrouped(panes: Any) -> Any:
    """A second grouping over panes."""
    return panes.window(uc.Fixed("1 hour")).combine(by="k", most=uc.Max("n"))


def scaled(factor: int) -> Any:
    """A function of the same name for each factor."""

    def values(table: pa.Table) -> Any:
        return table.set_column(table.column_names.index("v"), "v", pc.multiply(table["v"], factor))

    return values


def product(number: int) -> Any:
    """A combiner of the same name for each number."""
    return uc.from_scalar(
        "Product",
        create=lambda: 0,
        add=lambda s, x: s + number * x,
        merge=lambda s, t: s + t,
        uncombine=lambda s, t: s - t,
        extract=lambda s: s,
        accumulator=pa.int64(),
        output=pa.int64(),
        capability=uc.Capability.GROUP,
    )("v")


def seconds(length: int) -> Any:
    """Windows of the same name for each length."""

    def assign(times: np.ndarray) -> Any:
        start = times - times % (length * 1_000_000)
        return None, start, start + length * 1_000_000

    return uc.Custom(assign)


def large(bound: int) -> Any:
    """A predicate of results of the same name for each bound."""

    def predicate(table: pa.Table) -> Any:
        return pc.greater(table["n"], bound)

    return uc.Repeatedly(uc.OnResult(predicate))


def every(number: int) -> Any:
    """A trigger of the user's of the same name for each number."""

    class Every(uc.UserTrigger):
        def on_element(self, row: Any, window: Any, ctx: Any) -> None:
            ctx.state["n"] = seen = ctx.state.get("n", 0) + 1
            if seen % number == 0:
                ctx.fire()

        def __repr__(self) -> str:
            return "Every()"

    return uc.Repeatedly(Every())


def running(step: int) -> Any:
    """A computation of the same name for each step."""

    class Running:
        output = state = pa.schema({"seen": pa.int64()})

        def on_row(self, row: Any, state: Any, ctx: Any) -> None:
            state["seen"] = (state["seen"] or 0) + step
            ctx.emit({"seen": state["seen"]})

    return Running


def split(source: Source, **kinds: Any) -> Any:
    """A step with outputs of these names, whose columns have these types."""
    outputs = {name: pa.schema({"seen": kind}) for name, kind in kinds.items()}
    return source().process(by="k", function=running(1), outputs=outputs or None)


def told(source: Source, broadcast: bool = True, **schema: Any) -> Any:
    """A step with broadcast rows, or the same function beside them."""

    class Told:
        output = state = shared = pa.schema({"seen": pa.int64()})

        def on_row(self, row: Any, state: Any, ctx: Any) -> None:
            ctx.emit(state)

        if broadcast:

            def on_broadcast(self, row: Any, shared: Any, ctx: Any) -> None:
                shared["seen"] = ctx.time

    keyed, rules = source(name="a"), source(name="b", **schema)
    if broadcast:
        return keyed.process(by="k", function=Told, broadcast=rules)
    return uc.union(keyed, rules).process(by="k", function=Told)


def joined(source: Source, where: Any = None, **options: Any) -> Any:
    """A join of two inputs, the left one filtered."""
    left, right = source(name="a"), source(name="b").select("ts", "k", "v")
    left = left if where is None else left.where(where)
    return left.join(right, **{"on": "k", "within": ("0 s", "1 minute"), **options})


def looking_back(source: Source, new: pa.DataType | None = None, by: Any = "k", **options: Any) -> Any:
    """Labels that look back over events, which have a new column."""
    schema = SCHEMA if new is None else SCHEMA.append(pa.field("new", new))
    labels, events = source(name="a"), source(name="b", schema=schema)
    return labels.join_rolling(events, "1 day", by=by, **options).combine(most=uc.Max("v"))


def united(source: Source, where: Any = None, **options: Any) -> Any:
    """A grouping of a union."""
    one, other = source(name="a", **options), source(name="b")
    return counted(uc.union(one if where is None else one.where(where), other))


def remembered(source: Source, factor: int, remember: bool = True) -> Any:
    """Panes that go through a function whose results are remembered."""
    panes = counted(source(), **again())

    def result(table: pa.Table) -> Any:
        table = table.set_column(table.column_names.index("n"), "n", pc.multiply(table["n"], factor))
        return table.select(["n", "k"]) if remember else table

    return panes.map(result, remember=remember)


WIDER = pa.schema([f.with_type(pa.float64()) if f.name == "v" else f for f in SCHEMA])
MORE = SCHEMA.append(pa.field("new", pa.string()))
col = uc.col

PAIRS: dict[str, Pair] = {
    # After the last grouping.
    "where after panes that are retracted": Pair(
        lambda s: counted(s(), **again()).where(col("n") > 1),
        lambda s: counted(s(), **again()).where(col("n") > 2),
        "where 1 was col('n') > 1 and is col('n') > 2",
        ("where 1",),
    ),
    "where added after panes that are retracted": Pair(
        lambda s: counted(s(), **again()),
        lambda s: counted(s(), **again()).where(col("n") > 2),
        "where 1 is new (predicate: col('n') > 2)",
    ),
    "where removed after panes that are retracted": Pair(
        lambda s: counted(s(), **again()).where(col("n") > 2),
        lambda s: counted(s(), **again()),
        "where 1 is gone (predicate: col('n') > 2)",
    ),
    "with_columns after panes that are retracted": Pair(
        lambda s: counted(s(), **again()).with_columns(m=col("n") * 2),
        lambda s: counted(s(), **again()).with_columns(m=col("n") * 3),
        "m of with_columns 1 was col('n') * 2 and is col('n') * 3",
        ("with_columns 1",),
    ),
    "texts after panes that are retracted": Pair(
        lambda s: counted(s(), **again()).with_columns(m=col("k").str.replace_all("a", "b", literal=True)),
        lambda s: counted(s(), **again()).with_columns(m=col("k").str.replace_all("a", "b")),
        "m of with_columns 1 was col('k').str.replace_all('a', 'b', literal=True) and is "
        "col('k').str.replace_all('a', 'b')",
        ("with_columns 1",),
    ),
    "select after panes that are retracted": Pair(
        lambda s: counted(s(), **again()).select("k", "n", "event_time", "diff"),
        lambda s: counted(s(), **again()).select("k", "total", "event_time", "diff"),
        "the columns that it shows are others: column 'total' is new; column 'n' is gone",
    ),
    "map after panes that are retracted": Pair(
        lambda s: counted(s(), **again()).map(lambda table: table.drop_columns(["total"])),
        lambda s: counted(s(), **again()).map(lambda table: table.filter(pc.field("n") > 1).drop_columns(["total"])),
        "the function of map 1 computes otherwise (changed: its text, pc)",
        ("map 1",),
    ),
    "where after panes that nothing retracts": Pair(
        lambda s: counted(s()).where(col("n") > 1), lambda s: counted(s()).where(col("n") > 2), ON
    ),
    "select after panes that nothing retracts": Pair(
        lambda s: counted(s()).select("k", "n"), lambda s: counted(s()).select("k", "total"), ON
    ),
    # Between groupings.
    "where between groupings of a changelog": Pair(
        lambda s: regrouped(counted(s(), **again()).where(col("total") > 1)),
        lambda s: regrouped(counted(s(), **again()).where(col("total") > 2)),
        "where 1 was col('total') > 1 and is col('total') > 2",
        ("where 1",),
    ),
    "with_columns between groupings": Pair(
        lambda s: regrouped(counted(s(), **again()).with_columns(n=col("n") + 1)),
        lambda s: regrouped(counted(s(), **again()).with_columns(n=col("n") + 2)),
        "n of with_columns 1 was col('n') + 1 and is col('n') + 2",
        ("with_columns 1",),
    ),
    "where between groupings that nothing retracts": Pair(
        lambda s: regrouped(counted(s()).where(col("total") > 1)),
        lambda s: regrouped(counted(s()).where(col("total") > 2)),
        ON,
    ),
    # Before the first grouping.
    "where before a grouping": Pair(
        lambda s: counted(s().where(col("v") > 1)), lambda s: counted(s().where(col("v") > 2)), ON
    ),
    "where of a function before a grouping": Pair(
        lambda s: counted(s().where(lambda t: pc.greater(t["v"], 1))),
        lambda s: counted(s().where(lambda t: pc.greater(t["v"], 2))),
        ON,
    ),
    "where added before a grouping": Pair(
        lambda s: counted(s()), lambda s: counted(s().where(~col("j").is_null())), ON
    ),
    "a column that only a filter reads": Pair(
        lambda s: counted(s().with_columns(limit=col("v") * 2).where(col("limit") > 4)),
        lambda s: counted(s().with_columns(limit=col("v") * 3).where(col("limit") > 4)),
        ON,
    ),
    "where before a grouping of a changelog": Pair(
        lambda s: counted(s(diff="d").where(col("v") > 1)),
        lambda s: counted(s(diff="d").where(col("v") > 2)),
        "where 1 was col('v') > 1 and is col('v') > 2",
        ("where 1",),
    ),
    "where of a function before a grouping of a changelog": Pair(
        lambda s: counted(s(diff="d").where(lambda t: pc.greater(t["v"], 1))),
        lambda s: counted(s(diff="d").where(lambda t: pc.greater(t["v"], 2))),
        "the function of where 1 computes otherwise (changed: its text)",
        ("where 1",),
    ),
    "a key": Pair(
        lambda s: counted(s().with_columns(part=col("id") % 4), by="part"),
        lambda s: counted(s().with_columns(part=col("id") % 5), by="part"),
        "part of with_columns 1 was col('id') % 4 and is col('id') % 5",
        ("with_columns 1",),
    ),
    "a key in the words of another version of the same": Pair(
        lambda s: counted(s().with_columns(part=lambda t: pc.multiply(t["id"], 2)), by="part"),
        lambda s: counted(s().with_columns(part=lambda t: pc.add(t["id"], t["id"])), by="part"),
        "the function of part of with_columns 1 computes otherwise (changed: its text)",
        ("with_columns 1",),
    ),
    "a session gap that rows bring": Pair(
        lambda s: counted(s().with_columns(wait=col("gap")), window=uc.Sessions(col("wait"))),
        lambda s: counted(s().with_columns(wait=col("at") - col("ts")), window=uc.Sessions(col("wait"))),
        "wait of with_columns 1 was col('gap') and is col('at') - col('ts')",
        ("with_columns 1",),
    ),
    "the expression of a session gap": Pair(
        lambda s: counted(s(), window=uc.Sessions(col("gap"))),
        lambda s: counted(s().with_columns(other=col("gap")), window=uc.Sessions(col("other"))),
        "window was Sessions(col('gap')) and is Sessions(col('other'))",
    ),
    "the input of a combiner": Pair(
        lambda s: counted(s().with_columns(v=col("v") * 2)),
        lambda s: counted(s().with_columns(v=col("v") * 3)),
        "v of with_columns 1 was col('v') * 2 and is col('v') * 3",
        ("with_columns 1",),
    ),
    "the function of a map": Pair(
        lambda s: counted(s().map(scaled(2))),
        lambda s: counted(s().map(scaled(3))),
        "the function of map 1 computes otherwise (changed: factor)",
        ("map 1",),
    ),
    "a map that is new": Pair(lambda s: counted(s()), lambda s: counted(s().map(scaled(2))), "map 1 is new"),
    "a column that no step reads": Pair(
        lambda s: counted(s().with_columns(u=col("v") * 2)), lambda s: counted(s().with_columns(u=col("v") * 3)), ON
    ),
    "a column of the source that no step reads": Pair(lambda s: counted(s()), lambda s: counted(s(schema=MORE)), ON),
    "a column of one of two sources that no step reads": Pair(
        lambda s: united(s), lambda s: united(s, schema=MORE), ON
    ),
    "a choice of columns before a grouping": Pair(
        lambda s: counted(s()), lambda s: counted(s().select("ts", "k", "v")), ON
    ),
    "the type of an input": Pair(
        lambda s: counted(s()), lambda s: counted(s(schema=WIDER)), "column 'v' was int64 and is double"
    ),
    "time=": Pair(
        lambda s: counted(s()), lambda s: counted(s(time="at")), "its event time was 'ts' and is 'at' (time=)"
    ),
    "time= of a window": Pair(
        lambda s: counted(s()), lambda s: counted(s(), time="at"), "its event time was 'ts' and is 'at' (time=)"
    ),
    "times of arrival": Pair(
        lambda s: counted(s()),
        lambda s: counted(s(watermark=uc.IngressTime())),
        "its event time was 'ts' and is 'the time of arrival' (time=)",
    ),
    "the weights of a changelog": Pair(
        lambda s: counted(s(changelog=uc.changelog.Ops("j", {"I": 1, "D": -1}))),
        lambda s: counted(s(changelog=uc.changelog.Ops("j", {"I": 1, "D": 0}))),
        "it read Ops(column='j', weights={'D': -1, 'I': 1}) and reads Ops(column='j', weights={'D': 0, 'I': 1})",
    ),
    "the words of a changelog in another order": Pair(
        lambda s: counted(s(changelog=uc.changelog.Ops("j", {"I": 1, "D": -1}))),
        lambda s: counted(s(changelog=uc.changelog.Ops("j", {"D": -1, "I": 1}))),
        ON,
    ),
    "the column of a changelog": Pair(
        lambda s: counted(s(changelog=uc.changelog.Flink("j"))),
        lambda s: counted(s(changelog=uc.changelog.Flink("k")), by="j"),
        "it read Flink(kind='j') and reads Flink(kind='k') (changelog=)",
    ),
    "with_time": Pair(
        lambda s: counted(s().with_time(col("at"), "1 hour")),
        lambda s: counted(s().with_time(col("at") - col("gap"), "1 hour")),
        "ts of with_time 1 was col('at') and is col('at') - col('gap')",
        ("with_time 1",),
    ),
    "with_time that is new": Pair(
        lambda s: counted(s()), lambda s: counted(s().with_time(col("at"), "1 hour")), "with_time 1 is new"
    ),
    "at_most_back=": Pair(
        lambda s: counted(s().with_time(col("at"), "1 hour")),
        lambda s: counted(s().with_time(col("at"), "2 hours")),
        "at_most_back of with_time 1 was '1 hour' and is '2 hours'",
    ),
    "sample over rows that are never retracted": Pair(
        lambda s: counted(s().sample(0.1, by="id")), lambda s: counted(s().sample(0.2, by="id")), ON
    ),
    "sample of a changelog": Pair(
        lambda s: counted(s(diff="d").sample(0.1, by="id")),
        lambda s: counted(s(diff="d").sample(0.2, by="id")),
        "fraction of sample 1 was 0.1 and is 0.2",
        ("sample 1",),
    ),
    "seed= of a sample before distinct": Pair(
        lambda s: s().sample(0.1).distinct("k", within="1 hour"),
        lambda s: s().sample(0.1, seed=1).distinct("k", within="1 hour"),
        "seed of sample 1 was 0 and is 1",
        ("sample 1",),
    ),
    "the sides of a union": Pair(
        lambda s: counted(uc.union(s(name="a"), s(name="b"), side="of"), by="of"),
        lambda s: counted(uc.union(one=s(name="a"), b=s(name="b"), side="of"), by="of"),
        "of of columns was 'a' and is 'one'",
    ),
    "one with_columns in two": Pair(
        lambda s: counted(s().with_columns(v=col("v") * 2, k=col("j"))),
        lambda s: counted(s().with_columns(v=col("v") * 2).with_columns(k=col("j"))),
        "with_columns 2 is new",
    ),
    "where before one side of a union": Pair(lambda s: united(s, col("v") > 1), lambda s: united(s, col("v") > 2), ON),
    "the name of a source of a union": Pair(
        lambda s: united(s),
        lambda s: counted(uc.union(s(name="c"), s(name="b"))),
        "its inputs were a(",
    ),
    # Functions of a grouping.
    "the functions of a combiner": Pair(
        lambda s: counted(s(), p=product(2)),
        lambda s: counted(s(), p=product(3)),
        "p has the name that it had, and computes otherwise (changed: 2)",
        ("stage 1",),
    ),
    "the functions of a combiner in a struct": Pair(
        lambda s: counted(s(), p=uc.Struct(n=uc.Count(), all=product(2))),
        lambda s: counted(s(), p=uc.Struct(n=uc.Count(), all=product(3))),
        "p has the name that it had, and computes otherwise",
        ("stage 1",),
    ),
    "the functions of a combiner for each key": Pair(
        lambda s: counted(s(), p=uc.PerKey(product(2), "j")),
        lambda s: counted(s(), p=uc.PerKey(product(3), "j")),
        "p has the name that it had, and computes otherwise",
        ("stage 1",),
    ),
    "the function of a window": Pair(
        lambda s: counted(s(), window=seconds(10)),
        lambda s: counted(s(), window=seconds(20)),
        "window has the name that it had, and computes otherwise (changed: length)",
        ("stage 1",),
    ),
    "the function of OnResult": Pair(
        lambda s: counted(s(), trigger=large(2), mode="retracting"),
        lambda s: counted(s(), trigger=large(3), mode="retracting"),
        "trigger has the name that it had, and computes otherwise (changed: bound)",
        ("stage 1",),
    ),
    "a trigger of the user's": Pair(
        lambda s: counted(s(), trigger=every(2), mode="retracting"),
        lambda s: counted(s(), trigger=every(3), mode="retracting"),
        "trigger has the name that it had, and computes otherwise (changed: on_element)",
        ("stage 1",),
    ),
    # Options of a grouping.
    "a window": Pair(
        lambda s: counted(s()),
        lambda s: counted(s(), window=uc.Fixed("2 minutes")),
        "window was Fixed('1 minute') and is Fixed('2 minutes')",
    ),
    "a trigger": Pair(lambda s: counted(s(), **again()), lambda s: counted(s(), mode="retracting"), "trigger was "),
    "a mode": Pair(
        lambda s: counted(s(), **again()),
        lambda s: counted(s(), **again("accumulating")),
        "mode was 'retracting' and is 'accumulating'",
    ),
    "keys": Pair(lambda s: counted(s()), lambda s: counted(s(), by="j"), "it was by (k: string) and is by (j: string)"),
    "a combiner that is new": Pair(
        lambda s: counted(s()), lambda s: counted(s(), most=uc.Max("v")), "most=Max('v') was added"
    ),
    "a combiner that is gone": Pair(
        lambda s: counted(s(), most=uc.Max("v")), lambda s: counted(s()), "most=Max('v') was removed"
    ),
    "another combiner of a name": Pair(
        lambda s: counted(s(), most=uc.Max("v")),
        lambda s: counted(s(), most=uc.Min("v")),
        "most=Max('v') is now Min('v')",
    ),
    "shards=": Pair(lambda s: counted(s()), lambda s: counted(s(shards=3)), "it had shards=2 and has shards=3"),
    "allowed_lateness of a grouping": Pair(
        lambda s: counted(s()), lambda s: counted(s(), allowed_lateness="1 hour"), ON
    ),
    "closing= and on_time=": Pair(
        lambda s: counted(s()), lambda s: counted(s(), closing="never", on_time="non_empty"), ON
    ),
    "another watermark": Pair(lambda s: counted(s()), lambda s: counted(s(watermark="5 minutes")), ON),
    "nothing": Pair(
        lambda s: regrouped(counted(s().where(col("v") > 1).map(scaled(2)), **again()).where(col("n") > 1)),
        lambda s: regrouped(counted(s().where(col("v") > 1).map(scaled(2)), **again()).where(col("n") > 1)),
        ON,
    ),
    # Steps over single rows.
    "where before distinct": Pair(
        lambda s: s().where(col("v") > 1).distinct("k", within="1 hour"),
        lambda s: s().where(col("v") > 2).distinct("k", within="1 hour"),
        "where 1 was col('v') > 1 and is col('v') > 2",
        ("where 1",),
    ),
    "within= of distinct": Pair(
        lambda s: s().distinct("k", within="1 hour"),
        lambda s: s().distinct("k", within="2 hours"),
        "within was '1 hour' and is '2 hours'",
    ),
    "allowed_lateness of distinct": Pair(
        lambda s: s().distinct("k", within="1 hour"),
        lambda s: s().distinct("k", within="1 hour", allowed_lateness="1 hour"),
        "allowed_lateness was None and is '1 hour'",
    ),
    "allowed_lateness of in_order": Pair(
        lambda s: s().in_order("k"),
        lambda s: s().in_order("k", allowed_lateness="1 hour"),
        "allowed_lateness was None and is '1 hour'",
    ),
    "the period of rolling": Pair(
        lambda s: s().rolling("1 hour", by="k").combine(n=uc.Count()),
        lambda s: s().rolling({"d": "1 day"}, by="k", closed="left").combine(n=uc.Count()),
        "lookbacks was 1 hour, right and is d 1 day, left",
    ),
    "a combiner of rolling": Pair(
        lambda s: s().rolling("1 hour", by="k").combine(n=uc.Count()),
        lambda s: s().rolling("1 hour", by="k").combine(n=uc.Count("v")),
        "results was",
    ),
    "the column that says when events were known": Pair(
        lambda s: looking_back(s, available="at"),
        lambda s: looking_back(s, available="ts"),
        "available of columns was 'at' and is 'ts'",
    ),
    "the key of events": Pair(
        lambda s: looking_back(s, by="k"),
        lambda s: looking_back(s, by={"k": "j"}),
        "k of columns was not there and is 'j'",
    ),
    "min_rows= of join_rolling": Pair(
        lambda s: looking_back(s), lambda s: looking_back(s, min_rows=2), "min_rows was None and is 2"
    ),
    "a column of events that no combiner reads": Pair(
        lambda s: looking_back(s), lambda s: looking_back(s, new=pa.int64()), ON
    ),
    "rolling as join_rolling": Pair(
        lambda s: uc.union(s(name="a"), s(name="b")).rolling("1 day", by="k").combine(n=uc.Count()),
        lambda s: looking_back(s),
        "labels was None and is True",
    ),
    "a column of rows of distinct": Pair(
        lambda s: s().distinct("k", within="1 hour"),
        lambda s: s(schema=MORE).distinct("k", within="1 hour"),
        "column 'new' is new",
    ),
    "where before a join": Pair(
        lambda s: joined(s, col("v") > 1),
        lambda s: joined(s, col("v") > 2),
        "where 1 was col('v') > 1 and is col('v') > 2",
        ("where 1",),
    ),
    "within= of a join": Pair(lambda s: joined(s), lambda s: joined(s, within=("0 s", "2 minutes")), "step was Join("),
    "keep= of a join": Pair(
        lambda s: joined(s, within=None, keep="1 hour"),
        lambda s: joined(s, within=None, keep="2 hours"),
        "step was KeptJoin(",
    ),
    "a lookup in the place of a join": Pair(
        joined, lambda s: joined(s, within=None, how="lookup"), "it was a join and is a lookup join"
    ),
    "how= of a lookup": Pair(
        lambda s: joined(s, within=None, how="lookup"),
        lambda s: joined(s, within=None, how="left_lookup"),
        "step was Lookup(",
    ),
    "allowed_lateness of a join": Pair(
        lambda s: joined(s), lambda s: joined(s, allowed_lateness="1 hour"), "step was Join("
    ),
    "the function of process": Pair(
        lambda s: s().process(by="k", function=running(1)),
        lambda s: s().process(by="k", function=running(2)),
        "function has the name that it had, and computes otherwise (changed: on_row)",
        ("stage 1",),
    ),
    "broadcast rows of process": Pair(
        lambda s: told(s, broadcast=False), told, "it had no broadcast rows and has some (broadcast=)"
    ),
    "a column of broadcast rows": Pair(told, lambda s: told(s, schema=MORE), "its broadcast rows: column 'new' is new"),
    "an output of process": Pair(lambda s: split(s), lambda s: split(s, a=pa.int64()), ON),
    "an output of process that nothing reads": Pair(
        lambda s: split(s, a=pa.int64(), b=pa.int64()).output("a"), lambda s: split(s, a=pa.int64()).output("a"), ON
    ),
    "the output that is shown": Pair(
        lambda s: split(s, a=pa.int64()),
        lambda s: split(s, a=pa.int64()).output("a"),
        "output 1 is new (name: 'a')",
    ),
    "the output that a step reads": Pair(
        lambda s: split(s, a=pa.int64(), b=pa.int64()).output("a").distinct("k", within="1 hour"),
        lambda s: split(s, a=pa.int64(), b=pa.int64()).output("b").distinct("k", within="1 hour"),
        "name of output 1 was 'a' and is 'b'",
        ("output 1",),
    ),
    "a column of an output": Pair(
        lambda s: split(s, a=pa.int64()).output("a").distinct("k", within="1 hour"),
        lambda s: split(s, a=pa.float64()).output("a").distinct("k", within="1 hour"),
        "column 'seen' was int64 and is double",
    ),
    "the function of map(remember=True)": Pair(
        lambda s: remembered(s, 2),
        lambda s: remembered(s, 3),
        "function has the name that it had, and computes otherwise (changed: factor)",
        ("stage 2",),
    ),
    # Steps that are others.
    "distinct in the place of a grouping": Pair(
        lambda s: counted(s()),
        lambda s: s().distinct("k", within="1 hour"),
        "it was a grouping by (k: string) and is distinct()",
    ),
    "a grouping in the place of distinct": Pair(
        lambda s: s().distinct("k", within="1 hour"),
        lambda s: counted(s()),
        "it was distinct() and is a grouping by (k: string)",
    ),
    "a join in the place of a grouping": Pair(
        lambda s: counted(s()),
        joined,
        "it was a grouping by (k: string) and is a join",
    ),
    "remember=True that is new": Pair(
        lambda s: remembered(s, 2, remember=False),
        lambda s: remembered(s, 2),
        "its steps were a grouping by (k: string) and are a grouping by (k: string), map(remember=True)",
    ),
    "remember=True that is gone": Pair(
        lambda s: remembered(s, 2),
        lambda s: remembered(s, 2, remember=False),
        "its steps were a grouping by (k: string), map(remember=True) and are a grouping by (k: string)",
    ),
    "a second grouping": Pair(
        lambda s: counted(s()),
        lambda s: regrouped(counted(s())),
        "its steps were a grouping by (k: string) and are a grouping by (k: string), a grouping by (k: string)",
    ),
    "distinct before a grouping": Pair(
        lambda s: counted(s()),
        lambda s: counted(s().distinct("id", within="1 hour")),
        "its steps were a grouping by (k: string) and are distinct(), a grouping by (k: string)",
    ),
    "two steps in another order": Pair(
        lambda s: s().distinct("id", within="1 hour").in_order("k"),
        lambda s: s().in_order("k").distinct("id", within="1 hour"),
        "it was distinct() and is in_order()",
    ),
}
"""More than 60 changes."""

REAL = (
    "where after panes that are retracted",
    "where before a grouping",
    "a key",
    "time=",
    "the functions of a combiner",
    "distinct in the place of a grouping",
    "remember=True that is new",
    "the function of process",
)
"""The changes that `make test` tries with real queries."""
