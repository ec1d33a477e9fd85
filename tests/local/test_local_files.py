"""Files as the source of a run in this process: the same rows as a table gives, in every format, with every option."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest
from opened import opened

import uncombine as uc
from uncombine.errors import InvalidArgument, UnknownColumn, UnreadableFile
from uncombine.files import file_format
from uncombine.files.reading import describe
from uncombine.local import data_files as module

INSTANT = pa.timestamp("us", "UTC")
WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "parquet": lambda table, path: pq.write_table(table, path, row_group_size=70),
    "arrow": lambda table, path: pf.write_feather(table, path, chunksize=70, compression="uncompressed"),
    "csv": pc.write_csv,
    "json": lambda table, path: table.to_pandas().to_json(path, orient="records", lines=True, date_format="iso"),
}


def rows(seed: int, count: int = 500) -> pa.Table:
    r = np.random.default_rng(seed)
    times = np.where(r.random(count) < 0.02, np.datetime64("NaT"), r.integers(0, 900, count).astype("datetime64[s]"))
    return pa.table(
        {
            "ts": pa.array(times.astype("datetime64[us]")).cast(INSTANT),
            "user": pa.array(r.choice(["ada", "bob", None], count), pa.string()),
            "x": pa.array(r.integers(-5, 50, count)),
            "note": pa.array([f"row {i}" for i in range(count)]),
        }
    )


def written(folder: Path, form: str = "parquet", count: int = 5) -> tuple[pa.Table, str]:
    tables = [rows(seed) for seed in range(count)]
    for i, table in enumerate(tables):
        WRITERS[form](table, folder / f"part-{i}.{form}")
    return pa.concat_tables(tables), str(folder)


def minutes(source: uc.Flow) -> uc.Flow:
    windows = source.where(uc.col("x") > 0).window(uc.Fixed("1 minute"))
    return windows.combine(by="user", total=uc.Sum("x"), n=uc.Count(), mid=uc.Median("x"))


def results(flow: uc.Flow) -> Any:
    result = flow.run()
    return (
        Counter(map(repr, result.drop_columns(["pane"]).to_pylist())),
        Counter(map(repr, result.left_out.to_pylist())),
        result.counts(),
    )


@pytest.mark.weekly
@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("way", ["threads", "operators"])
def test_every_format_gives_the_panes_of_a_table(form: str, way: str, tmp_path: Path) -> None:
    table, folder = written(tmp_path, form)

    def flow(source: uc.Flow) -> uc.Flow:
        return minutes(source if way == "threads" else source.map(lambda given: given))

    found = flow(uc.flow(uc.Files(folder, schema=table.schema)))
    assert ("combined in threads" in found.explain()) == (way == "threads")
    wanted = results(flow(uc.flow(table)))
    assert results(found) == wanted
    assert wanted[2]["bad"] > 0


@pytest.mark.weekly
def test_large_files_are_read_in_parts_and_small_ones_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, folder = written(tmp_path)
    size = (tmp_path / "part-0.parquet").stat().st_size
    sizes = {}
    for bytes_of_one in (size // 4, int(2.5 * size), 100 * size):
        monkeypatch.setattr(module, "READER_BYTES", bytes_of_one)
        flow = minutes(uc.flow(folder))
        sizes[bytes_of_one] = len(flow.source.readers(["ts", "user", "x"]))  # type: ignore[attr-defined]
        assert results(flow) == results(minutes(uc.flow(table)))
    assert list(sizes.values())[1:] == [3, 1]
    assert sizes[size // 4] > 10


def test_folders_are_columns_and_a_filter_leaves_out_rows(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(rows(day), tmp_path / f"day={day}" / "a.parquet")
    source = uc.flow(uc.Files(tmp_path, filter=(uc.col("day") > 1) & (uc.col("x") > 10)))
    panes = source.window(uc.Global()).combine(by="day", n=uc.Count(), least=uc.Min("x")).run()
    wanted = {}
    for day in (2, 3):
        some = rows(day).to_pandas().query("x > 10 and ts == ts")
        wanted[day] = (len(some), some.x.min())
    assert {row["day"]: (row["n"], row["least"]) for row in panes.to_pylist()} == wanted


def test_a_bad_file_is_an_error_or_is_left_out_with_a_warning(tmp_path: Path) -> None:
    table, folder = written(tmp_path)
    (tmp_path / "part-9.parquet").write_bytes(b"PAR1 this is none PAR1")
    with pytest.raises(UnreadableFile, match=r"part-9\.parquet cannot be read"):
        minutes(uc.flow(folder)).run()
    with pytest.warns(UserWarning, match=r"skipped: .*part-9\.parquet"):
        found = results(minutes(uc.flow(uc.Files(folder, on_bad_file="skip"))))
    assert found == results(minutes(uc.flow(table)))


def test_a_file_that_is_left_out_is_told_once_and_without_advice(tmp_path: Path) -> None:
    _, folder = written(tmp_path)
    (tmp_path / "part-9.parquet").write_bytes(b"PAR1 this is none PAR1")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = minutes(uc.flow(uc.Files(folder, on_bad_file="skip"))).run()
    assert result.counts()["bad"] > 0  # these rows are found in a second reading
    [warning] = told
    assert str(warning.message).endswith(": write it again")


def test_a_csv_file_without_commas_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts;user;x\n2016-01-20T12:00:00Z;ada;5\n")
    with pytest.raises(InvalidArgument, match=r"a\.csv has no comma, so 'ts;user;x' is one column: give delimiter=';'"):
        uc.flow(tmp_path)
    assert results(minutes(uc.flow(uc.Files(tmp_path, delimiter=";"))))[0].total() == 1
    (tmp_path / "0.csv").write_text("")  # the name is that of the file whose columns are taken
    with pytest.raises(InvalidArgument, match=r"a\.csv has no comma"):
        uc.flow(uc.Files(tmp_path, on_bad_file="skip"))
    (tmp_path / "0.csv").unlink()
    (tmp_path / "a.csv").write_text("a;b\n2016-01-20T12:00:00Z\n")
    schema = pa.schema({"a;b": INSTANT})
    flow = uc.flow(uc.Files(tmp_path, schema=schema), time="a;b").window(uc.Global()).combine(n=uc.Count())
    assert flow.run()["n"].to_pylist() == [1]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_value_of_another_type_than_in_the_first_file_is_told(form: str, tmp_path: Path) -> None:
    _, folder = written(tmp_path, form, count=1)
    table = rows(1)
    table = table.set_column(table.schema.get_field_index("x"), "x", pa.array(["many"] * 500))
    WRITERS[form](table, tmp_path / f"part-1.{form}")
    with pytest.raises(UnreadableFile, match=r"part-1.*give schema= with a type that takes all files \(without it the"):
        minutes(uc.flow(folder)).run()


def test_a_missing_column_is_an_error_or_null(tmp_path: Path) -> None:
    _, folder = written(tmp_path, count=1)
    pq.write_table(rows(7).drop_columns(["x"]), tmp_path / "part-7.parquet")
    with pytest.raises(UnreadableFile, match="has no column 'x'"):
        minutes(uc.flow(folder)).run()
    source = uc.flow(uc.Files(folder, on_missing_column="null")).window(uc.Global())
    [row] = source.combine(n=uc.Count(), known=uc.Count("x")).run().to_pylist()
    usable = [table["ts"].length() - table["ts"].null_count for table in (rows(0), rows(7))]
    assert (row["n"], row["known"]) == (sum(usable), usable[0])


def test_a_changelog_is_read_as_one(tmp_path: Path) -> None:
    table = rows(3).append_column("op", pa.array(["c", "d"] * 250))
    for i in range(5):
        pq.write_table(table.slice(100 * i, 100), tmp_path / f"{i}.parquet")
    form = uc.changelog.Ops("op", {"c": 1, "d": -1})
    whole = table.filter(pa.compute.is_valid(table["ts"]))
    for how in (minutes, lambda source: source.window(uc.Sessions("20 seconds")).combine(by="user", n=uc.Count())):
        found = results(how(uc.flow(tmp_path, changelog=form)))
        assert found[0] == results(how(uc.flow(whole, changelog=form)))[0]


def test_a_script_may_bring_the_rows(tmp_path: Path) -> None:
    _, folder = written(tmp_path, count=1)
    script = [uc.Elements([{"ts": 0, "user": "eve", "x": 5, "note": ""}]), uc.Watermark(None)]
    assert minutes(uc.flow(folder)).run(script)["user"].to_pylist() == ["eve"]


def test_flows_over_files_are_joined(tmp_path: Path) -> None:
    table, folder = written(tmp_path, count=1)
    given = [lambda: uc.flow(folder), lambda: uc.flow(table)]
    joined = [minutes(source()).join(minutes(source()), on="user") for source in given]
    found, wanted = (Counter(map(repr, flow.run().to_pylist())) for flow in joined)
    assert found == wanted
    assert found


def test_the_result_goes_into_a_table(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table, folder = written(tmp_path / "in")
    minutes(uc.flow(folder)).to_table(f"parquet:{tmp_path / 'out'}")
    assert pq.read_table(tmp_path / "out").num_rows == sum(results(minutes(uc.flow(table)))[0].values())


def test_steps_after_the_panes_and_a_run_in_another_mode(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table, folder = written(tmp_path / "in")

    def flow(source: uc.Flow) -> uc.Flow:
        late = source.window(uc.Fixed("1 minute"), allowed_lateness="1 hour").combine(by="user", n=uc.Count())
        return late.where(uc.col("n") > 5).with_columns(more=uc.col("n") + 1).select("user", "window", "more", "diff")

    found, wanted = (flow(s).run() for s in (uc.flow(folder), uc.flow(table)))
    assert Counter(map(repr, found.to_pylist())) == Counter(map(repr, wanted.to_pylist()))
    assert found.num_rows
    found.to_table(f"parquet:{tmp_path / 'out'}")
    assert pq.read_table(tmp_path / "out").num_rows == wanted.num_rows


@pytest.mark.weekly
def test_rows_arrive_at_times_of_their_own_and_go_to_a_named_source(tmp_path: Path) -> None:
    table = rows(1).append_column("seen", pa.array(np.arange(500) * 1_000_000).cast(INSTANT))
    pq.write_table(table, tmp_path / "a.parquet")
    options: dict[str, Any] = {"watermark": "10 seconds", "processing_time": "seen", "name": "clicks"}
    trigger = uc.AfterWatermark(early=uc.AfterCount(3))
    found, wanted = (
        source.window(uc.Fixed("1 minute"), trigger, mode="retracting").combine(n=uc.Count()).run()
        for source in (opened(tmp_path, **options), uc.flow(table, **options))
    )
    assert found.to_pylist() == wanted.to_pylist()
    assert len({row["pane"]["processing_time"] for row in found.to_pylist()}) > 5
    named = uc.flow(tmp_path, name="clicks").window(uc.Global()).combine(n=uc.Count())
    script = [uc.Elements([{"ts": 0}], input="clicks"), uc.Watermark(None)]
    assert named.run(script)["n"].to_pylist() == [1]


def test_a_changelog_that_is_read_wrongly_is_told(tmp_path: Path) -> None:
    pq.write_table(rows(1).append_column("op", pa.array(["c", "?"] * 250)), tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match="the source has a column 'op'"):
        uc.flow(tmp_path)
    changes = uc.flow(tmp_path, changelog=uc.changelog.Ops("op", {"c": 1, "d": -1}))
    with pytest.raises(InvalidArgument, match=r"\?"):
        minutes(changes).run()


def test_the_number_of_threads_changes_no_bit(tmp_path: Path) -> None:
    r = np.random.default_rng(1)
    for i in range(6):
        table = rows(i).append_column("v", pa.array(r.normal(0, 10.0 ** r.integers(-5, 9), 500)))
        pq.write_table(table, tmp_path / f"{i}.parquet")
    windows = uc.flow(tmp_path).window(uc.Sliding("5 minutes", "1 minute")).combine(by="user", s=uc.Sum("v"))
    flow = windows.window(uc.Global()).combine(s=uc.Sum("s"), n=uc.Count())
    before, found = pa.cpu_count(), []
    try:
        for count in (1, 2, 4):
            pa.set_cpu_count(count)
            found.append([one.run().to_pylist() for one in (windows, flow)])
    finally:
        pa.set_cpu_count(before)
    assert found[0] == found[1] == found[2]


def test_wrong_use_is_told(tmp_path: Path) -> None:
    _, folder = written(tmp_path, count=1)
    with pytest.raises(UnreadableFile, match="there are no files"):
        uc.flow(tmp_path / "nothing")
    with pytest.raises(UnknownColumn, match="time="):
        uc.flow(folder, time="when")
    with pytest.raises(InvalidArgument, match=r"this flow runs without Spark, so it has no DataFrame"):
        _ = uc.flow(folder).df
    with pytest.raises(InvalidArgument, match="delimter"):
        uc.flow(uc.Files(folder, delimter=";"))


def test_files_are_described(tmp_path: Path) -> None:
    _, folder = written(tmp_path, count=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = minutes(uc.flow(folder)).explain()
    assert f"source: parquet files at {folder}" in told


def test_a_text_that_is_more_than_a_key_is_read_as_text(tmp_path: Path) -> None:
    table, folder = written(tmp_path)

    def of(source: uc.Flow, how: str) -> uc.Flow:
        if how == "filter":
            source = source.where(uc.col("user") != "bob")
        best = {"last": uc.Max("user")} if how == "combiner" else {}
        return source.window(uc.Fixed("1 minute")).combine(by="user", n=uc.Count(), **best)

    for how in ("filter", "combiner", "key alone"):
        assert results(of(uc.flow(folder), how)) == results(of(uc.flow(table), how))
    given = uc.flow(uc.Files(folder, filter=uc.col("user") != "ada"))
    kept = table.filter(pa.compute.fill_null(pa.compute.not_equal(table["user"], "ada"), False))
    assert results(of(given, "key alone"))[0] == results(of(uc.flow(kept), "key alone"))[0]


@pytest.mark.parametrize("on_bad_file", ["error", "skip"])
def test_a_column_that_is_not_needed_may_be_missing(on_bad_file: str, tmp_path: Path) -> None:
    """Also where rows are left out, which are shown with all columns if all files have them."""
    table, folder = written(tmp_path)
    wanted = results(minutes(uc.flow(table)))
    pq.write_table(table.slice(0, 500).drop_columns(["note"]), tmp_path / "part-0.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = results(minutes(uc.flow(uc.Files(folder, schema=table.schema, on_bad_file=on_bad_file))))
    assert (found[0], found[2]) == (wanted[0], wanted[2])
    assert sum(found[1].values()) == wanted[2]["bad"]


def test_an_error_shows_no_row_of_a_csv_file(tmp_path: Path) -> None:
    """Nor more than the beginning of a value."""
    secret = "very secret " * 9
    (tmp_path / "a.csv").write_text(f"ts,user,x\n2016-01-20T12:00:00Z,ada,5\n2016-01-20T12:00:00Z,{secret},5,6\n")
    with pytest.raises(UnreadableFile, match="Expected 3 columns, got 4: write it again") as error:
        minutes(uc.flow(tmp_path)).run()
    assert "secret" not in str(error.value)
    schema = pa.schema({"ts": INSTANT, "user": pa.string(), "x": pa.int64()})
    (tmp_path / "a.csv").write_text(f"ts,user,x\n2016-01-20T12:00:00Z,ada,{secret}\n")
    with pytest.raises(UnreadableFile, match=r"'very secret.*\.\.\.' is no int64") as error:
        minutes(uc.flow(uc.Files(tmp_path, schema=schema))).run()
    assert str(error.value).count("secret") < 5
    (tmp_path / "a.csv").write_text(";".join([secret] * 5) + "\n1\n")
    with pytest.raises(InvalidArgument, match="has no comma") as error:
        uc.flow(tmp_path)
    assert str(error.value).count("secret") < 5


def test_the_description_of_many_columns_compares_no_column_with_every_other(tmp_path: Path) -> None:
    """Names that count how often they are compared; all pairs of 2,000 columns would be 4,000,000."""

    class Name(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Name.compared += 1
            return str.__eq__(self, other)

    class Names:
        def __init__(self, schema: pa.Schema) -> None:
            self.schema, self.names = schema, [Name(name) for name in schema.names]
            self.types = schema.types

        def __iter__(self) -> Any:
            return iter(self.schema)

    names = [f"c{i}" for i in range(2000)]
    described = describe(tmp_path, "csv", pa.schema({name: pa.int64() for name in names}), columns=names)
    object.__setattr__(described, "schema", Names(described.schema))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_format, "standard_schema", lambda schema: schema)
        described.__post_init__()
    assert Name.compared < 20_000
