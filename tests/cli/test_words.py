"""Combiners from text on the command line."""

from __future__ import annotations

import contextlib
import random

import pytest
from hostile_texts import COSTLY, damaged
from seeds import seeds

import uncombine as uc
from uncombine.cli.words import combiner_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("top=TopK('x', 3)", ("top", uc.TopK("x", 3))),
        ("best=arg_max:user:score", ("best", uc.ArgMax("user", "score"))),
        ("m=avg:x", ("m", uc.Mean("x"))),
        ("n=Sum(col('x').str.len_chars())", ("n", uc.Sum(uc.col("x").str.len_chars()))),
        ("n=CollectSet(concat(col('x'), '-'))", ("n", uc.CollectSet(uc.concat(uc.col("x"), "-")))),
    ],
)
def test_texts_are_values(text: str, value: object) -> None:
    assert combiner_of(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').getcwd()",
        "Sum(open('x'))",
        "Sum(1 + 1)",
        "Sum(",
        "TopK()",
        "Sum(col('x').str)",
        "Sum(col('x').call('os'))",
        "Sum(col('x').str._of('a'))",
    ],
)
def test_texts_are_not_run(text: str) -> None:
    with pytest.raises(uc.UncombineError):
        combiner_of(f"a={text}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("first:page", "--combine 'first:page' has no name for its result: write first_page=first:page"),
        ("f=first:page", "First() needs 'by', but was given 1 argument: write f=first:page:COLUMN"),
        ("f=arg_max:page", "write f=arg_max:page:COLUMN"),
        ("q=quantile", "write q=quantile:x:q"),
    ],
)
def test_a_part_that_is_missing_is_named_in_words(text: str, says: str) -> None:
    with pytest.raises(uc.UncombineError) as refused:
        combiner_of(text)
    assert says in str(refused.value)


OF_EXPRESSIONS = [
    "Max(col('ts').dt.truncate('1 hour') - datetime.timedelta(seconds=5))",
    "Mean(col('x').call('round', options={'ndigits': 2}))",
    "Sum(coalesce(abs(col('x')), 0) // 2)",
]


@pytest.mark.parametrize("text", COSTLY, ids=lambda text: text[:20])
def test_texts_that_cost_too_much_are_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(uc.UncombineError) as refused:
        combiner_of(f"a={text}")
    assert len(str(refused.value)) < 6000


@pytest.mark.parametrize("seed", seeds(1, 40))
def test_texts_with_damage_are_read_or_refused(seed: int) -> None:
    good = ["a=TopK('x', 3)", "p=quantile:x:0.9", "a=Sum('x').where(col('y') > 2)", "a=avg:x", "n=count:*"]
    good += [f"a={made}" for made in OF_EXPRESSIONS]
    for text in damaged(random.Random(seed), good, 250):
        with contextlib.suppress(uc.UncombineError):
            combiner_of(text)


@pytest.mark.parametrize(
    "made", ["Sum('x').where(col('y') > 2)", "(Sum('x') / Count())", "Quantile('x', 0.5)", *OF_EXPRESSIONS]
)
def test_a_combiner_is_written_on_the_command_line_as_it_prints_itself(made: str) -> None:
    assert repr(combiner_of(f"total={made}")) == f"('total', {made})"
