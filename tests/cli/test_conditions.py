"""Conditions from text on the command line: the rows that they keep, and the parts of files that they leave unread."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile_texts import COSTLY

import uncombine as uc
from uncombine.cli.command_line import main
from uncombine.cli.conditions import condition_of

ROWS = pa.table(
    {
        "user": ["ada", "bob", "", None],
        "score": [1, 2, 3, None],
        "price": [0.5, 1.5, 2.5, None],
        "cents": pa.array([Decimal("1.10"), Decimal("2.20"), Decimal("3.30"), None], pa.decimal128(9, 2)),
        "done": [True, False, True, None],
        "day": [date(2024, 5, 1), date(2024, 5, 2), date(2024, 5, 3), None],
        "at": pa.array([datetime(2024, 5, day) for day in (1, 2, 3)] + [None], pa.timestamp("us", "UTC")),
        "plain": pa.array([datetime(2024, 5, day) for day in (1, 2, 3)] + [None], pa.timestamp("ms")),
        "took": [timedelta(minutes=1), timedelta(minutes=2), timedelta(minutes=3), None],
        "place": pa.array(["a", "b", "c", None]).dictionary_encode(),
        "list": [[1], [2], [3], None],
    }
)


@pytest.mark.parametrize(
    ("texts", "rows"),
    [
        (["user=ada"], [0]),
        (["user==ada"], [0]),
        (["user!=ada"], [1, 2]),
        (["user="], [2, 3]),
        (["user!="], [0, 1]),
        (["score>1", "score<3"], [1]),
        ([" score >= 2"], [1, 2]),
        (["score="], [3]),
        (["price<=1.5"], [0, 1]),
        (["cents=2.2"], [1]),
        (["done=false"], [1]),
        (["day>2024-05-01"], [1, 2]),
        (["at>=2024-05-02T02:00:00+02:00"], [1, 2]),
        (["at<2024-05-02"], [0]),
        (["plain>=2024-05-02T00:00:00Z"], [1, 2]),
        (["took>90 seconds"], [1, 2]),
        (["place=b"], [1]),
        (["col('score') % 2 == 1"], [0, 2]),
        (["~(col('user').str.contains('a')) & (col('score') > 1)"], [1, 2]),
    ],
    ids=lambda value: " and ".join(value) if isinstance(value[0], str) else "",
)
def test_a_condition_keeps_rows(texts: list[str], rows: list[int]) -> None:
    condition = condition_of(texts, ROWS.schema)
    assert condition is not None
    kept = ROWS.append_column("row", pa.array(range(4))).filter(condition.evaluate(ROWS))
    assert kept["row"].to_pylist() == rows


def test_no_text_is_no_condition() -> None:
    assert condition_of([], ROWS.schema) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("user", "--where takes COLUMN=VALUE such as user=ada"),
        ("usr=ada", "--where needs column 'usr', which the input does not have: did you mean 'user'?"),
        ("score=one", "compares column 'score', which is int64, with 'one', which is none: write a value such as '3'"),
        ("cents=x", "compares column 'cents', which is decimal128"),
        ("done=yes", "write a value such as 'true'"),
        ("at=noon", "write a value such as '2024-05-01T12:00:00Z'"),
        ("day=31.1.2024", "write a value such as '2024-05-01'"),
        ("took=3", "write a value such as '5 minutes'"),
        ("score>", "has no value after >"),
        ("list=1", "compares no column of list"),
        ("col('score').call('os')", "os"),
        ("col(open('x')) > 1", "is neither a call of a public name nor a plain value"),
        ("abs(-1)", "--where takes COLUMN=VALUE"),
        ("x" * 3000, "the text of a condition has at most 2000 characters"),
    ],
)
def test_a_text_that_is_no_condition_is_refused(text: str, says: str) -> None:
    with pytest.raises(uc.UncombineError) as refused:
        condition_of([text], ROWS.schema)
    assert says in str(refused.value)


@pytest.mark.parametrize("text", COSTLY, ids=lambda text: text[:20])
def test_texts_that_cost_too_much_are_refused_in_a_sentence(text: str) -> None:
    for condition in (text, f"col('score') > {text}"):
        with pytest.raises(uc.UncombineError) as refused:
            condition_of([condition], ROWS.schema)
        assert len(str(refused.value)) < 6000


def test_parts_of_a_file_without_such_rows_are_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second row group is damaged, so who reads it fails."""
    rows = pa.table({"ts": pa.array([1, 2, 3, 4], pa.timestamp("us", "UTC")), "n": [1, 2, 30, 40]})
    path = tmp_path / "rows.parquet"
    pq.write_table(rows, path, row_group_size=2, compression="none", use_dictionary=False)
    first, second = (pq.read_metadata(path).row_group(i).column(1) for i in range(2))
    data = bytearray(path.read_bytes())
    end = second.data_page_offset + second.total_compressed_size
    assert first.data_page_offset < second.data_page_offset
    data[second.data_page_offset : end] = b"\xff" * (end - second.data_page_offset)
    path.write_bytes(data)
    command = ["replay", str(path), "--window", "global", "--combine", "total=sum:n", "--final", "--json"]
    assert main(command) == 2
    assert "cannot be read" in capsys.readouterr().err
    before = "ts<1970-01-01T00:00:00.000003Z"
    for condition, code in (("n<30", 0), (before, 0), ("col('n') < 3", 0), ("n>=30", 2), ("col('n') + 0 < 3", 2)):
        assert main([*command, "--where", condition]) == code, condition
        assert ('"total": 3' in capsys.readouterr().out) == (code == 0)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "1e400", "sNaN"])
def test_a_decimal_that_is_none_is_told(word: str) -> None:
    with pytest.raises(uc.errors.InvalidArgument, match="which is none"):
        condition_of([f"d={word}"], pa.schema({"d": pa.decimal128(10, 2)}))


def test_a_float_is_read_as_the_column_has_it() -> None:
    rows = pa.table({"ts": [0, 1], "x": pa.array([0.1, 0.5], pa.float32())})
    for text, count in (("x=0.1", 1), ("x>0.1", 1), ("x<=0.1", 1)):
        assert len(uc.flow(rows).where(condition_of([text], rows.schema)).collect()) == count
