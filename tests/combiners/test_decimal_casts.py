"""Decimals in texts, next to Python's own, also where Arrow's parser is wrong or ends the process."""

from __future__ import annotations

import random
from decimal import Context, Decimal, InvalidOperation
from pathlib import Path

import pyarrow as pa
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.combiners.rows.decimal_casts import cast_exactly

EXACT = Context(prec=2000, Emin=-(10**9), Emax=10**9)
KINDS = [pa.decimal128(12, 3), pa.decimal128(38, 0), pa.decimal128(38, 38), pa.decimal256(76, 40)]
FAR = ["1e-999999999", "1e-4000", "-7e-2147483647", "1e-77", "." + "0" * 60 + "1"]
WHOLE = ["1." + "0" * 200, "1" + "0" * 90 + "e-90", "-1.5" + "0" * 40, "0e-999999999", "0." + "0" * 500]


def oracle(text: str, kind: pa.DataType) -> Decimal | None:
    """The number if the type holds it without rounding."""
    number = Decimal(text)
    if number and not -2000 < number.adjusted() < 2000:
        return None
    scaled = EXACT.scaleb(number, kind.scale) if number else Decimal(0)
    fits = scaled == scaled.to_integral_value() and abs(scaled) < 10**kind.precision
    return EXACT.scaleb(scaled, -kind.scale) if fits else None


def drawn(r: random.Random) -> str:
    whole = str(r.randrange(10 ** r.choice([1, 3, 12]))) + "0" * r.choice([0, 0, 0, 30, 90])
    fraction = "0" * r.choice([0, 0, 3, 18, 40, 200]) + r.choice(["", "5", "25"]) + "0" * r.choice([0, 1, 38, 300])
    exponent = r.choice(["", "", "e0", f"e{r.randrange(-60, 60)}", f"E-{r.randrange(10 ** r.choice([2, 5, 10]))}"])
    return f"{r.choice(['', '-'])}{whole}.{fraction}0{exponent}"


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("seed", seeds(3, 200))
def test_texts_are_the_decimals_of_python(seed: int, kind: pa.DataType) -> None:
    r = random.Random(f"{seed} {kind}")
    texts = [*(drawn(r) for _ in range(60)), *FAR, *WHOLE]
    whole = []
    for text in texts:
        expected = oracle(text, kind)
        try:
            read = cast_exactly(pa.array([text, None]), kind)
            assert cast_exactly(pa.scalar(text), kind).as_py() == read[0].as_py()
        except pa.ArrowInvalid:
            # Arrow refuses some numbers that fit, such as one of more digits than a decimal has; it is safe.
            continue
        assert read.to_pylist() == [expected, None], text
        whole.append(text)
    assert cast_exactly(pa.chunked_array([whole, []]), kind).to_pylist() == [oracle(text, kind) for text in whole]
    assert len(whole) > 3


@pytest.mark.parametrize("text", ["1_0." + "0" * 20, "1.٠" + "0" * 20, " 1." + "0" * 20, "nan" + "." + "0" * 20])
def test_texts_that_only_python_reads_are_refused(text: str) -> None:
    with pytest.raises(pa.ArrowInvalid):
        cast_exactly(pa.array([text]), KINDS[0])


@pytest.mark.parametrize("text", FAR)
@pytest.mark.parametrize("form", ["csv", "csv;", "json", "json text", "folder"])
def test_a_file_with_such_a_text_is_unreadable(form: str, text: str, tmp_path: Path) -> None:
    schema = pa.schema({"price": pa.decimal128(12, 3), "n": pa.timestamp("us")})
    options = {}
    if form == "csv;":
        text, options = text.replace(".", ","), {"delimiter": ";", "decimal_point": ","}
    if form == "folder":
        (tmp_path / f"price={text}").mkdir()
        path = tmp_path / f"price={text}" / "a.csv"
        path.write_text("n\n2016-01-20 12:00:00\n")
    elif form.startswith("csv"):
        path = tmp_path / "a.csv"
        path.write_text(
            "price{0}n\n1{2}5{0}2016-01-20 12:00:00\n{1}{0}2016-01-20 12:00:00\n".format(
                options.get("delimiter", ","), text, options.get("decimal_point", ".")
            )
        )
    else:
        path = tmp_path / "a.json"
        value = f'"{text}"' if "text" in form else "0" * text.startswith(".") + text
        path.write_text(
            f'{{"price": 1.5, "n": "2016-01-20 12:00:00"}}\n{{"price": {value}, "n": "2016-01-20 12:00:00"}}\n'.replace(
                "1.5", '"1.5"'
            )
        )
        if form == "json":
            path.write_text(path.read_text().replace('"1.5"', "1.5"))
    files = uc.Files(tmp_path, format="json" if "json" in form else "csv", schema=schema, **options)
    with pytest.raises(uc.errors.UnreadableFile):
        uc.flow(files, time="n").window(uc.Global()).combine(s=uc.Sum("price")).run()


@pytest.mark.parametrize("form", ["csv", "csv;", "json"])
def test_decimals_of_files_are_read_as_before(form: str, tmp_path: Path) -> None:
    schema = pa.schema({"price": pa.decimal128(12, 3), "s": pa.string(), "n": pa.timestamp("us")})
    if form == "json":
        lines = [
            '{"price": 1.50, "s": "1e-999999999", "n": "2016-01-20 12:00:00"}',
            '{"price": "-2", "s": "x", "n": "2016-01-20 12:00:00"}',
            '{"price": null, "s": "y", "n": "2016-01-20 12:00:00"}',
        ]
        (tmp_path / "a.json").write_text("\n".join(lines))
        files = uc.Files(tmp_path / "a.json", schema=schema)
    else:
        point, cut = (",", ";") if form == "csv;" else (".", ",")
        rows = [f" 1{point}50 {cut}1e-999999999", f"-2{cut}x", f"{cut}y"]
        lines = [f"price{cut}s{cut}n", *(f"{row}{cut}2016-01-20 12:00:00" for row in rows)]
        (tmp_path / "a.csv").write_text("\n".join(lines))
        files = uc.Files(tmp_path / "a.csv", schema=schema, delimiter=cut, decimal_point=point)
    result = uc.flow(files, time="n").window(uc.Global()).combine(all=uc.CollectList("price"), n=uc.Count()).run()
    assert sorted(result["all"].to_pylist()[0]) == [Decimal("-2.000"), Decimal("1.500")]
    assert result["n"].to_pylist() == [3]


def test_a_point_where_the_decimal_point_is_a_comma_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("price,n\n1.5,2016-01-20 12:00:00\n")
    files = uc.Files(
        tmp_path,
        format="csv",
        schema=pa.schema({"price": pa.decimal128(9, 2), "n": pa.timestamp("us")}),
        decimal_point=",",
    )
    with pytest.raises(uc.errors.UnreadableFile, match="has a point"):
        uc.flow(files, time="n").window(uc.Global()).combine(s=uc.Sum("price")).run()


def test_an_expression_casts_texts_as_well() -> None:
    table = pa.table({"t": ["1." + "0" * 100, "2.5"]})
    assert uc.aggregate(table, s=uc.Sum(uc.col("t").cast(pa.decimal128(12, 3)))).to_pylist()[0]["s"] == Decimal("3.5")
    with pytest.raises((pa.ArrowInvalid, InvalidOperation, uc.errors.UncombineError)):
        uc.aggregate(pa.table({"t": FAR[:1]}), s=uc.Sum(uc.col("t").cast(pa.decimal128(12, 3))))


def test_a_decimal_of_another_scale_is_cast_or_refused() -> None:
    """Arrow's product wraps around: 4 became 0.597."""
    narrow, wide = pa.decimal128(38, 0), pa.decimal128(38, 38)
    zero, four = pa.array([Decimal(0), None], narrow), pa.array([Decimal(4), Decimal(0)], narrow)
    assert cast_exactly(pa.chunked_array([zero, zero]), wide).to_pylist() == [Decimal(0), None] * 2
    for values in (four, pa.ListArray.from_arrays([0, 2], four), pa.StructArray.from_arrays([four], ["x"])):
        kind = wide if values is four else pa.list_(wide) if pa.types.is_list(values.type) else pa.struct({"x": wide})
        with pytest.raises(pa.ArrowInvalid, match="4 does not fit"):
            cast_exactly(values, kind)
    assert cast_exactly(pa.array([Decimal("-99.5")]), pa.decimal128(38, 36)).to_pylist() == [Decimal("-99.5")]
