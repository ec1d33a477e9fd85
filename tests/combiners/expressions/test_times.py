"""Texts and numbers as instants: what Python's datetime says of each, and null for what is no time."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.combiners.expressions import times as module
from uncombine.combiners.expressions.times import cast_time
from uncombine.errors import InvalidArgument, TypeMismatch

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FORMATS = [
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%d/%m/%y %H:%M",
    "%m/%d/%Y %I:%M:%S %p",
    "%d %b %Y %H:%M:%S.%f",
    "%A, %B %d, %Y",
    "%a %b %d %H:%M:%S %Y",
    "%Y%m%d%H%M%S",
    "%d/%b/%Y:%H:%M:%S %z",
    "100%% %Y-%m-%dT%H.%M%z",
]


def micros(when: datetime) -> int:
    """The microseconds of a time; one without a zone is UTC."""
    return ((when if when.tzinfo else when.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)


def read(text: str | None, form: str) -> int | None:
    try:
        return None if text is None else micros(datetime.strptime(text, form))
    except ValueError:
        return None


def found(values: list[Any], form: str, kind: pa.DataType | None = None) -> list[int | None]:
    return cast_time(pa.array(values, kind), form).cast(pa.int64()).to_pylist()


def spoilt(r: random.Random, text: str) -> str:
    """A text with a letter less, more, or another."""
    at = r.randrange(len(text) + 1)
    return text[:at] + r.choice(["", "0", "9", "x", " ", "-"]) + text[at + r.choice([0, 1]) :]


def drawn(r: random.Random) -> datetime:
    # From the year 1000 on, since strftime writes no zeros before a year.
    when = datetime(1000, 1, 1) + timedelta(microseconds=r.randrange(3_287_182 * 86_400 * 1_000_000))
    if r.random() < 0.5:
        when = when.replace(year=r.choice([1969, 1970, 2000, 2023, 2024, 2068]), day=min(when.day, 28))
    return when.replace(microsecond=r.choice([0, when.microsecond]))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("seed", seeds(8))
def test_a_format_reads_what_python_reads(form: str, seed: int) -> None:
    r = random.Random(seed)
    texts: list[str | None] = [None, ""]
    for _ in range(300):
        zone = f"{r.choice('+-')}{r.randrange(24):02}{r.choice(['', ':'])}{r.randrange(60):02}"
        text = drawn(r).strftime(form.replace("%z", zone))
        texts.append(text if r.random() < 0.5 else r.choice([text.upper(), text.lower(), spoilt(r, text)]))
    expected = [read(text, form) for text in texts]
    assert found(texts, form, pa.string()) == expected
    assert len(expected) - expected.count(None) > 50
    assert expected.count(None) > 10


@pytest.mark.parametrize("seed", seeds(8))
def test_iso_texts_are_those_of_python(seed: int) -> None:
    r = random.Random(seed)
    texts = []
    for _ in range(300):
        when, depth = drawn(r), r.choice(["days", "minutes", "seconds", "microseconds"])
        text = when.date().isoformat()
        if depth != "days":
            text += r.choice("T ") + when.time().isoformat("auto" if depth == "microseconds" else depth)
            text += r.choice(["", "Z", "+00:00", "-05:30", "+0530", "+14"])
        texts.append(text if r.random() < 0.7 else spoilt(r, text))

    def iso(text: str) -> int | None:
        # Python's has forms that are not taken here: weeks, dates without hyphens, any letter before the hour.
        if not re.fullmatch(
            r"\s*\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?\s*", text
        ):
            return None
        try:
            return micros(datetime.fromisoformat(text.strip()))
        except ValueError:
            return None

    expected = [iso(text) for text in texts]
    assert found(texts, "") == expected
    assert expected.count(None) > 10
    for text, time in zip(texts, expected, strict=True):  # whatever stands beside it
        assert found([text], "") == [time]


def test_digits_after_the_sixth_are_dropped() -> None:
    assert found(["1970-01-01T00:00:00.000001999", "1969-12-31T23:59:59.999999999Z"], "") == [1, -1]


def test_a_part_of_many_iso_texts_is_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PART", 7)
    texts = ["1970-01-01T00:00:01Z"] * 10 + ["no"] + ["1970-01-01"] * 10
    assert found(texts, "") == [1_000_000] * 10 + [None] + [0] * 10


@pytest.mark.parametrize(("unit", "factor"), [("s", 1_000_000), ("ms", 1_000), ("us", 1)])
def test_numbers_count_a_unit(unit: str, factor: int) -> None:
    most = 253_402_300_799_999_999 // factor
    least = -(62_135_596_800_000_000 // factor)
    values = [0, -1, 1_700_000_000, most, most + 1, least, least - 1, 2**63 - 1, -(2**63), None]
    expected = [v * factor if v is not None and least <= v <= most else None for v in values]
    assert found(values, unit) == expected
    assert found([None if v is None else str(v) for v in values], unit) == expected
    assert found([Decimal(v) if v is not None else None for v in values], unit) == expected
    assert found([2**64 - 1, 5], unit, pa.uint64()) == [None, 5 * factor]
    assert found([1, None], unit, pa.int8()) == [factor, None]


def test_fractions_are_rounded_to_microseconds() -> None:
    assert found([1_700_000_000.123456, -0.5e-6, float("nan"), float("inf"), -1e300, None], "s") == [
        1_700_000_000_123_456, 0, None, None, None, None,
    ]  # fmt: skip
    assert found([1.5], "ms") == [1500]
    assert found([1500.0, -1500.0], "ns") == [2, -2]
    assert found([Decimal("1700000000.123456"), Decimal("0.0000005")], "s") == [1_700_000_000_123_456, 0]
    assert found(["1700000000.123456", "1.5 ", "1.", ".5", "1e3", ""], "s") == [
        1_700_000_000_123_456, 1_500_000, None, None, None, None,
    ]  # fmt: skip


def test_nanoseconds_before_1970_belong_to_the_microsecond_before() -> None:
    assert found([-1, -1000, 999, 1000, 2**63 - 1], "ns") == [-1, -1, 0, 1, (2**63 - 1) // 1000]


def test_times_stay_what_they_are() -> None:
    when = [datetime(2024, 5, 1, 12, tzinfo=UTC), None]
    expected = [micros(when[0]), None]  # type: ignore[arg-type]
    for kind in (pa.timestamp("s", "UTC"), pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("us")):
        assert found([None if w is None else w.replace(tzinfo=None) for w in when], "", pa.timestamp("us")) == expected
        assert (
            cast_time(pa.array(when, pa.timestamp("us", "UTC")).cast(kind), "").cast(pa.int64()).to_pylist()[1] is None
        )
    assert found([-719_163, -719_162, 0, 2_932_896, 2_932_897], "", pa.date32()) == [
        None, -62_135_596_800_000_000, 0, 2_932_896 * 86_400_000_000, None,
    ]  # fmt: skip
    assert found([86_400_000], "", pa.date64()) == [86_400_000_000]


def test_columns_of_every_kind_of_text_and_equal_texts() -> None:
    texts = ["31.01.2024", "no", None] * 500
    expected = [micros(datetime(2024, 1, 31)), None, None] * 500
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        assert found(texts, "%d.%m.%Y", kind) == expected
    halves = pa.chunked_array([texts[:700], texts[700:]])
    assert cast_time(halves, "%d.%m.%Y").cast(pa.int64()).to_pylist() == expected
    assert cast_time(pa.scalar("31.01.2024"), "%d.%m.%Y").as_py() == datetime(2024, 1, 31, tzinfo=UTC)
    assert cast_time(pa.nulls(2), "").to_pylist() == [None, None]
    assert cast_time(pa.chunked_array([], pa.string()), "").type == pa.timestamp("us", "UTC")


def test_it_prints_as_it_is_written_and_says_its_type() -> None:
    for written in ("col('a').cast_time('ms')", "(col('a') + 1).cast_time('%Y')", "col('a').cast_time()"):
        assert repr(eval(written, {"col": uc.col})) == written
    kinds = {"a": pa.int64(), "b": pa.string()}
    assert uc.col("a").cast_time("s").type(pa.schema(kinds)) == pa.timestamp("us", "UTC")
    for expression, says in [
        (uc.col("a").cast_time(), "numbers count a unit since 1970: write cast_time('s')"),
        (uc.col("a").cast_time("%Y"), "numbers count a unit since 1970"),
        (uc.col("b").cast_time().cast_time("ms"), "is a time already: write cast_time() without 'ms'"),
        (uc.col("b").is_null().cast_time("ms"), "it takes texts and numbers, but was given bool"),
    ]:
        with pytest.raises(TypeMismatch, match=re.escape(says)):
            expression.type(pa.schema(kinds))


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ("hours", "a time is read by a unit of numbers ('s', 'ms', 'us' or 'ns') or a format of texts"),
        ("%d.%m", "has no year: add %Y or %y"),
        ("%Y %Y", "has %Y twice: leave one of them out"),
        ("%Y %q", "has '%q', and the directives are %Y, %y,"),
        ("%Y %", "has '%', and the directives are"),
        (5, "takes a unit or a format as text, but was given 5"),
    ],
)
def test_a_form_that_is_none_is_refused(form: Any, says: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(says)):
        uc.col("x").cast_time(form)
