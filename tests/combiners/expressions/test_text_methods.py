"""Methods of texts against those of Python, in every layout in which Arrow stores texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import uncombine as uc
from uncombine import Expr, col, concat
from uncombine.combiners.expressions.missing_methods import OF_TEXTS
from uncombine.errors import InvalidArgument, NoSuchStep, TypeMismatch

TEXTS = [
    None, "", " a ", "Ada Lovelace", "a,b,,c", ",", "aaa", "ß", "İ", "ΣΑΣ", "é", "e\u0301", "\U0001f40d\U0001f600a",
    "\u00a0x\u2003", "\x1f\t y\n", "\U0001d518", "\0", "AbC" * 40, "ǅ", "12 a1",
]  # fmt: skip

ALPHABET = st.text(alphabet="aAb, \u00e9\u00df\u03a3\U0001f40d\u2003\n", max_size=8)

S = col("s")


def _one(character: str, method: Callable[[str], str]) -> str:
    """A character in the other case, if that is one character: Arrow maps each character for itself."""
    other = method(character)
    return {"İ": "i"}.get(character, character) if len(other) > 1 else other


METHODS: list[tuple[Expr, Callable[[str], Any]]] = [
    (S.str.to_lowercase(), lambda s: "".join(_one(c, str.lower) for c in s)),
    (S.str.strip_chars(), str.strip),
    (S.str.strip_chars_start(), str.lstrip),
    (S.str.strip_chars_end(), str.rstrip),
    (S.str.strip_chars("a \U0001f40d"), lambda s: s.strip("a \U0001f40d")),
    (S.str.strip_chars_start("aA"), lambda s: s.lstrip("aA")),
    (S.str.strip_chars_end("aA"), lambda s: s.rstrip("aA")),
    (S.str.strip_chars(""), lambda s: s),
    (S.str.contains("a+b|\\d$"), lambda s: re.search("a+b|[0-9]$", s) is not None),
    (S.str.contains(""), lambda s: True),
    (S.str.contains("a.", literal=True), lambda s: "a." in s),
    (S.str.contains("", literal=True), lambda s: True),
    (S.str.starts_with("Ada"), lambda s: s.startswith("Ada")),
    (S.str.ends_with("c"), lambda s: s.endswith("c")),
    (S.str.starts_with(""), lambda s: True),
    (S.str.replace("[aA]", "<\\0>"), lambda s: re.sub("[aA]", r"<\g<0>>", s, count=1)),
    (S.str.replace_all("([aA])(.)", r"\2\1"), lambda s: re.sub("([aA])(.)", r"\2\1", s)),
    (S.str.replace("a", "\\1$1", literal=True), lambda s: s.replace("a", "\\1$1", 1)),
    (S.str.replace_all("a", "aa", literal=True), lambda s: s.replace("a", "aa")),
    (S.str.replace_all("\U0001f40d", "", literal=True), lambda s: s.replace("\U0001f40d", "")),
    (S.str.slice(0), lambda s: s),
    (S.str.slice(1), lambda s: s[1:]),
    (S.str.slice(1, 2), lambda s: s[1:][:2]),
    (S.str.slice(-2), lambda s: s[-2:]),
    (S.str.slice(-5, 3), lambda s: s[-5:][:3]),
    (S.str.slice(3, 0), lambda s: ""),
    (S.str.split_part(",", 0), lambda s: _part(s, ",", 0)),
    (S.str.split_part(",", 2), lambda s: _part(s, ",", 2)),
    (S.str.split_part(",", -1), lambda s: _part(s, ",", -1)),
    (S.str.split_part(",", -4), lambda s: _part(s, ",", -4)),
    (S.str.split_part("a,", 1), lambda s: _part(s, "a,", 1)),
    (S.str.len_chars(), len),
    (S.str.len_bytes(), lambda s: len(s.encode())),
    (concat(S), lambda s: s),
    (concat(S, "-", S), lambda s: f"{s}-{s}"),
    (concat("<", S, S, separator="|"), lambda s: f"<|{s}|{s}"),
    (concat(S, S.str.slice(0, 1).str.to_lowercase()), lambda s: s + "".join(_one(c, str.lower) for c in s[:1])),
]


def _part(text: str, by: str, index: int) -> str | None:
    parts = text.split(by)
    return parts[index] if -len(parts) <= index < len(parts) else None


def layouts(texts: list[str | None]) -> dict[str, pa.Array | pa.ChunkedArray]:
    """The same texts in each layout of Arrow."""
    plain = pa.array(texts, pa.string())
    values = pa.array([*dict.fromkeys([*texts, None, "in no row"])], pa.string())
    places = [values.to_pylist().index(text) for text in texts]
    return {
        "plain": plain,
        "large": plain.cast(pa.large_string()),
        "view": plain.cast(pa.string_view()),
        "sliced": pa.array(["before", None, *texts, "after"], pa.string()).slice(2, len(texts)),
        "chunks": pa.chunked_array([plain[:3], plain[3:3], plain[3:]]),
        "dictionary": plain.dictionary_encode(),
        "dictionary with null": pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), values),
        "large dictionary": plain.cast(pa.large_string()).dictionary_encode(),
        "dictionary of views": pa.DictionaryArray.from_arrays(pa.array(places), values.cast(pa.string_view())),
        "chunks of dictionaries": pa.chunked_array([plain[:4].dictionary_encode(), plain[4:].dictionary_encode()]),
        "no rows": pa.chunked_array([], pa.string()),
        "no rows of a dictionary": pa.chunked_array([], pa.dictionary(pa.int32(), pa.string())),
        "null": pa.nulls(3),
    }


LAYOUTS = layouts(TEXTS)


@pytest.mark.parametrize(("expr", "oracle"), METHODS, ids=[repr(expr) for expr, _ in METHODS])
def test_a_method_gives_what_python_gives(expr: Expr, oracle: Callable[[str], Any]) -> None:
    for layout, column in LAYOUTS.items():
        table = pa.table({"s": column})
        result = expr.evaluate(table)
        expected = [None if text is None else oracle(text) for text in column.to_pylist()]
        assert result.to_pylist() == expected, layout
        assert result.type == expr.type(table.schema), layout


@pytest.mark.parametrize(("expr", "oracle"), [(e, f) for e, f in METHODS if e.op != "concat" and e.args[0] is S])
def test_a_method_of_a_value_is_the_same_in_each_row(expr: Expr, oracle: Callable[[str], Any]) -> None:
    table = pa.table({"n": [1, 2]})
    for value in ("a,bA", " \U0001f40d", None):
        fixed = Expr(expr.op, tuple(uc.coalesce(value) if arg is S else arg for arg in expr.args))
        assert fixed.evaluate(table).to_pylist() == [None if value is None else oracle(value)] * 2


def test_capital_letters_are_those_of_each_character() -> None:
    rows = pa.table({"s": ["straße", "ada", "ÉΣσς", None]})
    upper = S.str.to_uppercase().evaluate(rows).to_pylist()
    assert upper[1:] == ["ADA", "ÉΣΣΣ", None]
    assert len(upper[0]) == 6  # Python writes ss, which are two characters


@example(["abc", ""], -5, 3)
@example(["a\U0001f40d"], 1, 1)
@given(st.lists(ALPHABET | st.none(), max_size=4), st.integers(-9, 9), st.none() | st.integers(0, 9))
def test_slices_are_pythons(texts: list[str | None], offset: int, length: int | None) -> None:
    rows = pa.table({"s": pa.array(texts, pa.string())})
    expected = [None if s is None else s[offset:] if length is None else s[offset:][:length] for s in texts]
    assert S.str.slice(offset, length).evaluate(rows).to_pylist() == expected


@given(st.lists(ALPHABET | st.none(), max_size=4), ALPHABET.filter(bool), st.integers(-4, 4), ALPHABET)
def test_literal_patterns_are_pythons(texts: list[str | None], part: str, index: int, new: str) -> None:
    rows = pa.table({"s": pa.array(texts, pa.string())})
    for expr, oracle in (
        (S.str.split_part(part, index), lambda s: _part(s, part, index)),
        (S.str.contains(part, literal=True), lambda s: part in s),
        (S.str.starts_with(part), lambda s: s.startswith(part)),
        (S.str.ends_with(part), lambda s: s.endswith(part)),
        (S.str.replace(part, new, literal=True), lambda s: s.replace(part, new, 1)),
        (S.str.replace_all(part, new, literal=True), lambda s: s.replace(part, new)),
        (S.str.strip_chars(part), lambda s: s.strip(part)),
        (concat(S, new, separator=part), lambda s: s + part + new),
    ):
        assert expr.evaluate(rows).to_pylist() == [None if s is None else oracle(s) for s in texts], expr


def test_texts_of_two_layouts_are_joined() -> None:
    rows = pa.table({"s": ["a", None], "large": pa.array(["b", "c"], pa.large_string()), "n": pa.nulls(2)})
    assert concat(S, col("large")).evaluate(rows).to_pylist() == ["ab", None]
    assert concat(S, None).evaluate(rows).to_pylist() == [None, None]
    assert concat(S, col("n")).evaluate(rows).to_pylist() == [None, None]
    assert concat("a", "b").evaluate(rows).to_pylist() == ["ab", "ab"]
    assert concat(S, S.fill_null("?")).evaluate(rows).to_pylist() == ["aa", None]


SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "n": pa.int64(), "b": pa.binary(), "s": pa.string()})


@pytest.mark.parametrize(
    "wrong",
    [
        col("n").str.to_lowercase(),
        col("b").str.len_chars(),
        col("ts").str.contains("a"),
        col("n").str.replace_all("a", "b"),
        col("n").str.slice(1),
        col("n").str.split_part(",", 0),
        concat(col("s"), col("n")),
        col("s") + "a",
    ],
    ids=repr,
)
def test_a_wrong_type_is_an_error_before_any_row(wrong: Expr) -> None:
    for refused in (lambda: wrong.type(SCHEMA), lambda: uc.flow(SCHEMA).with_columns(x=wrong)):
        with pytest.raises(
            TypeMismatch, match=r"^\S.* does not work on .*: (it takes texts|texts are joined)"
        ) as error:
            refused()
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: S.str.contains("("), "is no regular expression of RE2"),
        (lambda: S.str.contains("(?=a)"), "is no regular expression of RE2"),
        (lambda: S.str.contains(5), "a pattern must be a text, but is 5"),
        (lambda: S.str.contains("a", literal="yes"), "literal= must be True or False, but is 'yes'"),
        (lambda: S.str.replace("(a)", r"\2"), "does not replace a match"),
        (lambda: S.str.replace_all("", "x", literal=True), "must have a character"),
        (lambda: S.str.replace("a", None), "the value of replace() must be a text, but is None"),
        (lambda: S.str.slice("a"), "the offset of slice() must be a whole number, but is 'a'"),
        (lambda: S.str.slice(True), "the offset of slice() must be a whole number, but is True"),
        (lambda: S.str.slice(0, -1), "the length of slice() must be between 0 and"),
        (lambda: S.str.slice(2**40), "the offset of slice() must be between"),
        (lambda: S.str.split_part("", 0), "the separator of split_part() must have a character"),
        (lambda: S.str.split_part(",", 2**40), "the index of split_part() must be between"),
        (lambda: S.str.strip_chars(5), "must be a text, but is 5"),
        (lambda: S.str.starts_with(None), "the prefix of starts_with() must be a text, but is None"),
        (lambda: concat(), "concat() needs at least one expression or text"),
        (lambda: concat(S, 5), "concat() joins texts, but was given int"),
        (lambda: concat(uc.flow(SCHEMA), uc.flow(SCHEMA)), "uc.union(a, b)"),
        (lambda: concat(S, separator=None), "the separator of concat() must be a text, but is None"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused_when_it_is_built(build: Callable[[], Any], says: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        build()
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_names_of_other_libraries_get_ours() -> None:
    with pytest.raises(NoSuchStep, match=r"^x\.str has no casefold: write x\.str\.to_lowercase\(\)$"):
        S.str.casefold
    with pytest.raises(AttributeError, match="'TextMethods' object has no attribute 'bogus'"):
        S.str.bogus
    assert [name for name in OF_TEXTS if hasattr(S.str, name)] == []
    second = [S.str.lower(), S.str.upper(), S.str.strip(), S.str.trim("-"), S.str.len(), S.str.length()]
    ours = ["to_lowercase()", "to_uppercase()", "strip_chars()", "strip_chars('-')", "len_chars()", "len_chars()"]
    assert [repr(one) for one in second] == [f"{S!r}.str.{name}" for name in ours]


@pytest.mark.parametrize("give", [lambda m: uc.flow(SCHEMA).where(m), lambda m: uc.flow(SCHEMA).with_columns(x=m)])
def test_a_method_without_its_parentheses_is_no_function_of_a_table(give: Callable[[Any], Any]) -> None:
    for method, name in ((S.str.len_chars, "len_chars"), (col("ts").dt.hour, "hour"), (S.is_null, "is_null")):
        with pytest.raises(InvalidArgument, match=rf"the method {name} of an expression .*: write {name}\(\)$"):
            give(method)
