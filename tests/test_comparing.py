"""`uc.compare`: everything that may be a side of it, the result, and what is refused before a row is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import uncombine as uc

OLD = pa.table({"k": ["a", "b", "c"], "n": [1, 2, 3]})
NEW = pa.table({"k": ["a", "b", "d"], "n": [1, 5, 3]})
WORDS = "old and new differ: 1 row changed, 1 only in old, 1 only in new, 1 equal"

HITS = [
    {"ts": 0, "user": "ada", "x": 5},
    {"ts": 1, "user": "bob", "x": 2},
    {"ts": 70_000_000, "user": "ada", "x": 1},
]


def minutes(rows: Any = HITS, trigger: str | None = None, mode: Any = None) -> uc.Flow:
    windows = uc.flow(rows).window("1 minute", *([trigger] if trigger else []), **({"mode": mode} if mode else {}))
    return windows.combine(by="user", total=uc.Sum("x"))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    pq.write_table(OLD, tmp_path / "old.parquet")
    pyarrow.csv.write_csv(OLD, tmp_path / "old.csv")
    (tmp_path / "old.json").write_text(
        "".join(f'{{"k": "{k}", "n": {n}}}\n' for k, n in [("a", 1), ("b", 2), ("c", 3)])
    )
    for place in range(3):
        pq.write_table(OLD.slice(place, 1), tmp_path / f"part{place}.parquet")
    return tmp_path


FORMS = {
    "arrow": lambda folder: OLD,
    "batch": lambda folder: OLD.to_batches()[0],
    "pandas": lambda folder: OLD.to_pandas(),
    "polars": lambda folder: pl.from_arrow(OLD),
    "lazy": lambda folder: pl.from_arrow(OLD).lazy(),
    "dicts": lambda folder: OLD.to_pylist(),
    "columns": lambda folder: OLD.to_pydict(),
    "generator": lambda folder: iter(OLD.to_pylist()),
    "duckdb": lambda folder: duckdb.from_arrow(OLD),
    "parquet": lambda folder: str(folder / "old.parquet"),
    "path": lambda folder: folder / "old.csv",
    "json": lambda folder: uc.Files(folder / "old.json"),
    "pattern": lambda folder: str(folder / "part*.parquet"),
    "paths": lambda folder: [folder / f"part{place}.parquet" for place in range(3)],
    "flow": lambda folder: uc.flow(OLD.append_column("ts", pa.array([0, 0, 0]))).select("k", "n"),
    "result": lambda folder: uc.flow(OLD.append_column("ts", pa.array([0, 0, 0]))).select("k", "n").run(),
    "changelog": lambda folder: pa.table(
        {"k": ["a", "b", "c", "b", "b"], "n": [1, 7, 3, 7, 2], "diff": [1, 1, 1, -1, 1]}
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_a_side_is_compared(files: Path, form: str) -> None:
    comparison = uc.compare(FORMS[form](files), NEW, keys="k")
    assert comparison.verdict == WORDS
    assert comparison.to_arrow().to_pylist() == [
        {"difference": "changed", "k": "b", "n_old": 2, "n_new": 5},
        {"difference": "only in old", "k": "c", "n_old": 3, "n_new": None},
        {"difference": "only in new", "k": "d", "n_old": None, "n_new": 3},
    ]
    assert uc.compare(OLD, FORMS[form](files)).same


def test_a_comparison_reads_as_words() -> None:
    comparison = uc.compare(OLD, NEW, keys="k")
    assert repr(comparison) == str(comparison)
    assert repr(comparison).splitlines() == [
        WORDS,
        "changed columns: n (1)",
        "difference   k  n_old  n_new",
        "changed      b      2      5",
        "only in old  c      3",
        "only in new  d             3",
    ]
    html = comparison._repr_html_()
    assert WORDS in html
    assert "<td" in html
    assert uc.compare(OLD, OLD)._repr_html_() == "<p>old and new are the same: 3 rows</p>"
    assert repr(uc.compare(OLD, OLD.slice(0, 1))).startswith("old and new differ: 2 rows only in old, 1 equal")
    assert repr(uc.compare({"x": [1]}, {"x": [1]})) == "old and new are the same: 1 row"
    assert repr(uc.compare({"x": [1, 2]}, {"x": [1]}, examples=0)) == "old and new differ: 1 row only in old, 1 equal"


def test_a_comparison_shows_the_columns_that_changed() -> None:
    old, new = ({"a_old": [1, 2], "a_b": [1, n], "same": [1, 1]} for n in (1, 2))
    comparison = uc.compare(old, new, keys="a_old")
    assert comparison.examples.column_names == ["difference", "a_old", "a_b_old", "a_b_new", "same_old", "same_new"]
    assert repr(comparison).splitlines()[1:] == [
        "changed columns: a_b (1)",
        "difference  a_old  a_b_old  a_b_new",
        "changed         2        1        2",
    ]


def test_a_comparison_is_neither_true_nor_false() -> None:
    with pytest.raises(uc.errors.TypeMismatch, match=r"neither true nor false: write \.same"):
        bool(uc.compare(OLD, OLD))


def test_a_comparison_in_this_process_has_no_frame_of_spark() -> None:
    with pytest.raises(uc.errors.InvalidArgument, match=r"write to_arrow\(\)"):
        _ = uc.compare(OLD, OLD).df


def test_two_flows_over_one_source() -> None:
    best = uc.flow(HITS).window("1 minute").combine(by="user", total=uc.Max("x"))
    assert uc.compare(minutes(), best, keys=["user", "window"]).same
    more = uc.flow([*HITS, HITS[1]]).window("1 minute").combine(by="user", total=uc.Sum("x"))
    comparison = uc.compare(minutes(), more, keys=["user", "window"])
    assert (comparison.equal, comparison.changed) == (2, 1)
    assert comparison.changed_columns == {"total": 1}
    assert comparison.to_arrow()["total_new"].to_pylist() == [4]


@pytest.mark.parametrize("mode", [None, "retracting"])
def test_panes_that_are_shown_again_are_netted(mode: str | None) -> None:
    often = minutes(trigger="early every 1 row", mode=mode)
    assert uc.compare(minutes(), often).same
    assert uc.compare(
        minutes(trigger="early every 1 row", mode="retracting").run(), minutes(), keys=["user", "window"]
    ).same


def test_a_mode_that_does_not_say_which_panes_it_replaces_is_refused() -> None:
    with pytest.raises(uc.errors.InvalidArgument, match="mode='accumulating' can show a window more than once"):
        uc.compare(minutes(), minutes(trigger="early every 1 row", mode="accumulating"))


def test_a_flow_is_compared_with_the_table_that_it_wrote(tmp_path: Path) -> None:
    minutes().to_table(f"duckdb:{tmp_path}/shop.db#totals")
    with duckdb.connect(f"{tmp_path}/shop.db") as database:
        table = database.table("totals").to_arrow_table()
    assert "window_start" in table.column_names
    for keys in (None, ["user", "window"], ["user", "window_start", "window_end"]):
        assert uc.compare(minutes(), table, keys=keys).same
        assert uc.compare(table, minutes().run(), keys=keys).equal == 3
    assert uc.compare(minutes(HITS[:2]), table, keys=["user", "window"]).only_new == 1


def test_a_result_of_panes_that_stay_is_compared_with_a_warning() -> None:
    script = [uc.Elements(HITS[:1]), uc.Elements(HITS[1:]), uc.Watermark(None)]
    stays = uc.flow(script).window("1 minute", "every 1 row", "accumulating").combine(total=uc.Sum("x")).run()
    with pytest.warns(UserWarning, match="windows can be shown again"):
        assert uc.compare(stays, uc.flow(HITS).window("1 minute").combine(total=uc.Sum("x"))).only_old > 0


def test_a_column_that_is_called_pane_is_a_value() -> None:
    rows = [{**hit, "pane": "left"} for hit in HITS]
    flow = uc.flow(rows).distinct("user", within="1 hour")
    other = flow.with_columns(pane=uc.col("user"))
    assert uc.compare(flow, other, keys="user").changed_columns == {"pane": 2}


def test_a_script_is_compared_by_its_result() -> None:
    script = [uc.Elements(HITS), uc.Watermark(None)]
    flow = minutes(script)
    assert uc.compare(flow.run(script), minutes()).same
    with pytest.raises(uc.errors.TypeMismatch, match=r"old is a script or a schema, .* give the result of flow.run"):
        uc.compare(script, minutes())


def test_a_floating_column_called_diff_is_a_value() -> None:
    old, new = pa.table({"diff": [1.5, 2.5]}), pa.table({"diff": [1.5, 3.5]})
    with pytest.raises(uc.errors.InvalidArgument, match="the difference would have two columns 'diff': rename"):
        uc.compare(old, new)
    keyed = [table.append_column("k", pa.array([1, 2])) for table in (old, new)]
    assert uc.compare(*keyed, keys="k").changed == 1


def test_weights_may_be_on_one_side_alone() -> None:
    changes = pa.table({"k": ["a", "b", "c", "c"], "n": [1, 2, 3, 9], "w": [1, 1, 1, 0]})
    assert uc.compare(changes, OLD, diff="w").same
    assert uc.compare(OLD, changes, keys="k", diff="w").same
    with pytest.raises(uc.errors.UnknownColumn, match="only old has 'w'"):
        uc.compare(changes, OLD)


def wrong(**options: Any) -> Any:
    return lambda: uc.compare(OLD, NEW, **options)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (wrong(keys=[]), "keys= must name at least one column, but is empty"),
        (wrong(keys=["k", "k"]), "keys= names a column twice"),
        (wrong(keys="z"), "keys= needs column 'z', which the input does not have"),
        (wrong(keys=3), "keys= takes the name of a column or several names, but was given 3"),
        (wrong(diff=3), "diff= takes the name of a weight column"),
        (wrong(diff="w"), "diff= names 'w', which neither side has: known are 'k', 'n'"),
        (wrong(tolerance=1e-9), "tolerance= needs keys="),
        (wrong(keys="k", tolerance=-1), "tolerance= must be a number from 0 to less than 1, but is -1"),
        (wrong(keys="k", tolerance=float("nan")), "tolerance= must be a number from 0"),
        (wrong(keys="k", tolerance="1"), "tolerance= must be a number from 0"),
        (wrong(examples=-1), "examples= must be a whole number of at least 0, but is -1"),
        (wrong(examples=True), "examples= must be a whole number of at least 0, but is True"),
        (
            lambda: uc.compare(OLD, NEW.drop_columns(["n"])),
            r"only old has 'n': leave them out, as by old.select\('k'\) of a flow, or select those to compare",
        ),
        (
            lambda: uc.compare(*[pa.table({"window_start": [0, 0], "n": [1, 2]})] * 2, keys="window_start"),
            r"or leave keys= out; for panes of which some are retracted, give result.table\(flat=True\) or",
        ),
        (lambda: uc.compare(OLD, "duckdb:shop.db#totals"), r"new is a live table, .* such as live.arrow\(\)"),
        (lambda: uc.compare("postgresql://me:secret@host/db#t", OLD), "old is a live table"),
        (lambda: uc.compare(uc.flow(HITS).window("1 minute"), OLD), r"old ends with window\(...\), .* add .combine"),
        (lambda: uc.compare(OLD, 3), "is needed, but the table is a int"),
        (lambda: uc.compare(OLD, OLD.schema), "new is a script or a schema"),
        (lambda: uc.compare(OLD, "no such folder/x.parquet"), "no such folder"),
        (lambda: uc.compare(OLD, uc.Files("x", order="name", start=["y"])), "start= needs streaming=True"),
        (lambda: uc.compare(minutes(trigger="early every 1 row", mode="retracting").select("user", "total"), OLD),
         "a comparison needs the weights of rows that can be retracted"),
        (lambda: uc.compare(pa.table({"diff": [1]}), pa.table({"diff": [1]})), "no columns but weights"),
        (lambda: uc.compare({"k": [1], "difference": [1]}, {"k": [1], "difference": [1]}), "two columns 'difference'"),
        (lambda: uc.compare({"x_old": [1], "x": [1]}, {"x_old": [1], "x": [1]}, keys="x_old"), "two columns 'x_old'"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_sentence(call: Any, words: str) -> None:
    with pytest.raises((uc.UncombineError, OSError), match=words) as caught:
        call()
    assert "secret" not in str(caught.value)
    assert not re.search(r"\n", str(caught.value))


def test_one_end_of_a_window_is_computed() -> None:
    hours = uc.flow([{"ts": 0, "x": 5}, {"ts": 1, "x": 2}]).window("1 hour").combine(n=uc.Count())
    starts = pd.DataFrame({"window_start": pd.to_datetime([0], utc=True), "n": [2]})
    for old, new in ((hours, starts), (starts, hours)):
        with pytest.raises(uc.errors.UnknownColumn, match=r"with window_start and window_end together, so give both"):
            uc.compare(old, new, keys="window_start")
    begin = hours.with_columns(window_start=uc.col("window").field("start")).select("window_start", "n")
    assert uc.compare(begin, starts, keys="window_start").same
    both = starts.assign(window_end=pd.to_datetime([3_600_000_000_000], utc=True))
    assert uc.compare(hours.select("window", "n"), both, keys=["window_start", "window_end"]).same


def test_nothing_runs_before_the_columns_are_known_to_fit() -> None:
    calls: list[int] = []

    def noted(table: pa.Table) -> pa.Table:
        calls.append(table.num_rows)
        return table

    flow = uc.flow(HITS).map(noted)
    with pytest.raises(uc.errors.UnknownColumn, match="different columns"):
        uc.compare(flow, OLD)
    with pytest.raises(uc.errors.UnknownColumn, match="keys="):
        uc.compare(flow, flow, keys="z")
    assert sum(calls) == 0


def test_missing_values_of_pandas_are_null() -> None:
    old = pd.DataFrame({"k": [1, 2], "x": [1.0, float("nan")]})
    assert uc.compare(old, [{"k": 1, "x": 1.0}, {"k": 2, "x": None}], keys="k").same


def test_a_written_result_is_compared_with_its_flow(tmp_path: Path) -> None:
    """The result of the command line has columns about panes, which the flow has not."""
    rows = [{"ts": 0, "k": "a", "x": 1}, {"ts": 1, "k": "b", "x": 2}]
    flow = uc.flow(rows, watermark="1 minute").window("1 hour").combine(by="k", n=uc.Count())
    written = flow.run().to_arrow(flat=True)
    assert {"timing", "processing_time"} <= set(written.column_names)
    assert uc.compare(written, flow, keys=["k", "window"]).same
    assert uc.compare(flow, written, keys=["k", "window"]).same
    other = written.set_column(written.column_names.index("n"), "n", pa.array([1, 5]))
    assert uc.compare(flow, other, keys=["k", "window"]).changed == 1


def test_panes_of_two_written_results_do_not_count(tmp_path: Path) -> None:
    """Two runs give the same totals at other moments, and their files say so in the column of panes."""
    files = []
    for name, at in (("old", 60_000_000), ("new", 90_000_000)):
        script = [uc.Elements(HITS, at=at), uc.Watermark(None, at=at + 1)]
        files.append(str(tmp_path / f"{name}.parquet"))
        pq.write_table(minutes(script).run().panes, files[-1])
    moments = [pq.read_table(file)["pane"].to_pylist() for file in files]
    assert moments[0] != moments[1]
    assert uc.compare(*files, keys=["user", "window"]).same
    assert uc.compare(*files).same
    other = pq.read_table(files[1])
    pq.write_table(other.set_column(other.column_names.index("pane"), "pane", pa.array(range(len(other)))), files[1])
    with pytest.raises(uc.errors.TypeMismatch, match="pane"):
        uc.compare(*files)
