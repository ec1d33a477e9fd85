"""A method that flows do not have is refused with the words to write instead, also between `window` and `combine`."""

from __future__ import annotations

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import NoSuchStep
from uncombine.panes import flow as flows

ROWS = uc.local.source(pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64()}))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("show", "a flow has no show: write flow.df.show()"),
        ("groupBy", r"a flow has no groupBy: write flow.window(...).combine(by=...)"),
        ("combine", "a flow has no combine: write flow.window(uc.Global()).combine(...)"),
    ],
)
def test_a_flow_names_what_to_write(name: str, says: str) -> None:
    with pytest.raises(NoSuchStep) as refused:
        getattr(ROWS, name)
    assert str(refused.value).startswith(says)


FIRST = "before its rows are combined: write flow.window(...).combine(...) first"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("show", f"flow.window(...) has no show {FIRST}, then write flow.df.show()"),
        ("toPandas", f"flow.window(...) has no toPandas {FIRST}, then write flow.df.toPandas()"),
        ("groupBy", "flow.window(...) has no groupBy: write flow.window(...).combine(by=...)"),
        ("trigger", "flow.window(...) has no trigger: give trigger= to flow.window(...)"),
        *((name, f"flow.window(...) has no {name} {FIRST}") for name in ("df", "schema", "where", "map")),
    ],
)
def test_windows_without_combine_name_what_to_write(name: str, says: str) -> None:
    with pytest.raises(NoSuchStep) as refused:
        getattr(ROWS.window(uc.Global()), name)
    assert str(refused.value) == says


def test_every_step_of_a_flow_has_a_hint_before_combine() -> None:
    steps = {name for name in dir(flows.Flow) if not name.startswith("_")} - {
        *flows.Flow.__dataclass_fields__,
        "window",
    }
    windowed = ROWS.window(uc.Global())
    for name in steps:
        with pytest.raises(NoSuchStep):
            getattr(windowed, name)


@pytest.mark.parametrize("value", [ROWS, ROWS.window(uc.Global())])
def test_an_unknown_name_is_an_attribute_error(value: object) -> None:
    assert not hasattr(value, "bogus")
    with pytest.raises(AttributeError, match="object has no attribute 'bogus'"):
        value.bogus  # type: ignore[attr-defined]


def test_an_error_inside_a_property_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object, flow: object) -> object:
        return None.columns  # type: ignore[attr-defined]

    monkeypatch.setattr(type(ROWS.source), "df", broken)
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'columns'"):
        ROWS.df


@pytest.mark.parametrize("by", [["user"], ("user",), iter(["user"]), (uc.col(n) for n in ["user"]), uc.col("user")])
def test_keys_may_be_any_iterable_of_names_and_columns(by: object) -> None:
    counted = ROWS.window(uc.Global()).combine(by=by, n=uc.Count())  # type: ignore[arg-type]
    assert counted.schema.names[:2] == ["user", "window"]


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("us")])
@pytest.mark.parametrize("text", ["2024-05-01T12:01:00", "2024-05-01T12:01:00Z", "2024-05-01T14:01:00+02:00"])
def test_a_watermark_column_takes_text_as_the_time_column_does(kind: pa.DataType, text: str) -> None:
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "until": kind})
    rows = uc.local.source(schema, watermark=uc.Punctuated("until"))
    counted = rows.window(uc.Fixed("1 minute")).combine(n=uc.Count())
    panes = uc.local.run([uc.Elements([{"ts": "2024-05-01T12:00:00", "until": text}])], counted)
    assert [row["pane"]["timing"] for row in panes.to_pylist()] == ["ON_TIME"]


def test_a_watermark_column_with_other_text_is_refused() -> None:
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "until": pa.timestamp("us", "UTC")})
    counted = (
        uc.local.source(schema, watermark=uc.Punctuated("until")).window(uc.Fixed("1 minute")).combine(n=uc.Count())
    )
    with pytest.raises(
        uc.errors.InvalidArgument, match="column 'until' of entry 0 of the script: 'soon' is not an ISO"
    ):
        uc.local.run([uc.Elements([{"ts": "2024-05-01T12:00:00", "until": "soon"}])], counted)
