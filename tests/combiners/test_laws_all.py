"""Every exported combiner, in each of its forms and over each type that it takes, keeps the laws it declares.

The combiners are found by reflection. One whose only required argument is its column needs no entry here; a
new one that needs more must be entered below, or the discovery fails.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import settings
from seeds import share

import uncombine as uc
from uncombine.combiners.laws import check_laws, subjects

x, y = uc.col("x"), uc.col("y")

# Arguments (positional, by name) of those that need more than a column, and further ones worth a look.
ARGUMENTS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "ApproxCountDistinct": [(("x",), {"error": 0.09, "seed": 7}), ((["x", "y"],), {})],
    "ApproxQuantiles": [(("x", [0, 0.5, 1]), {}), (("x", [0.9]), {"relative_error": 0.2})],
    "ArgMax": [(("x", "y"), {})],
    "ArgMin": [(("x", "y"), {})],
    "BottomK": [(("x", 2), {}), (("x", 2, "y"), {})],
    "CollectList": [(("x",), {}), ((["x", "y"],), {})],
    "Correlation": [(("x", "y"), {})],
    "Count": [((), {}), (("x",), {})],
    "CountDistinct": [(("x",), {}), ((["x", "y"],), {})],
    "Covariance": [(("x", "y"), {})],
    "Fingerprint": [(("x",), {}), ((["x", "y"],), {"seed": 7})],
    "First": [(("x", "y"), {})],
    "HeavyHitters": [(("x", 2), {}), (("x", 3), {"error": 0.5, "confidence": 0.6, "length": 2, "seed": 7})],
    "Histogram": [(("x", [-1, 0, 2]), {})],
    "Last": [(("x", "y"), {})],
    "LinearRegression": [(("x", "y"), {})],
    "PerKey": [((uc.Max("x"), "k"), {}), ((uc.Sum("x"), "k"), {}), ((uc.PerKey(uc.Count(), "k"), "x"), {})],
    "Quantile": [(("x", 0.3), {})],
    "Quantiles": [(("x", [0, 0.3, 1]), {})],
    "Struct": [((), {"a": uc.Max("x"), "b": uc.Count("x"), "c": uc.Max("x", retractable=False)})],
    "TopK": [(("x", 2), {}), (("x", 2, "y"), {})],
    "WeightedMean": [(("x", "y"), {})],
}

# Combiners that are made with methods and operators, on the types for which they are meant.
MADE: list[tuple[uc.Combiner, Any]] = [
    (uc.Sum("x").where(x > 0), pa.int64()),
    (uc.Max("x").where(y.is_null()), (pa.string(), pa.int64())),
    (uc.Sum(uc.coalesce(x, 1)), pa.int64()),
    (uc.Max("x").map(pc.negate), pa.float64()),
    (uc.Max("x") - uc.Min("x"), pa.int8()),
    (uc.Sum("x", exact=True) / uc.Count(), pa.float64()),
]

Range = uc.from_scalar(
    "Range",
    create=list,
    add=lambda s, v: sorted([*s, v]),
    merge=lambda s, t: sorted(s + t),
    extract=lambda s: s[-1] - s[0] if s else None,
    accumulator=pa.list_(pa.int64()),
    output=pa.int64(),
)
Net = uc.from_scalar(
    "Net", create=lambda: 0, add=lambda s, v: s + v, merge=lambda s, t: s + t, uncombine=lambda s, t: s - t,
    extract=lambda s: s, accumulator=pa.int64(), output=pa.int64(), capability=uc.Capability.GROUP,
)  # fmt: skip
SCALAR: list[tuple[uc.Combiner, Any]] = [
    (Range("x"), pa.int8()),
    (Net("x"), pa.int8()),
    (uc.PerKey(Net("x"), "k"), (pa.int8(), pa.string())),
]


def classes() -> dict[str, type[uc.Combiner]]:
    """The exported combiners."""
    exported = {name: getattr(uc.combiners, name) for name in uc.combiners.__all__}
    return {
        name: value
        for name, value in exported.items()
        if inspect.isclass(value) and issubclass(value, uc.Combiner) and not inspect.isabstract(value)
    }


def bases(name: str, cls: type[uc.Combiner]) -> list[uc.Combiner]:
    """Combiners of a class with its switches as they come."""
    if name in ARGUMENTS:
        return [cls(*args, **named) for args, named in ARGUMENTS[name]]
    required = [p for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
    if [p.name for p in required] != ["input"]:
        raise LookupError(f"{name} is exported and has no entry in ARGUMENTS: say how to make one")
    return [cls("x")]


def forms(name: str, cls: type[uc.Combiner]) -> Iterator[uc.Combiner]:
    """Combiners of a class with every setting of its switches."""
    for base in bases(name, cls):
        switches = (
            [f.name for f in dataclasses.fields(base) if isinstance(getattr(base, f.name), bool)]
            if (dataclasses.is_dataclass(base))
            else []
        )
        for setting in product((False, True), repeat=len(switches)):
            try:
                yield (dataclasses.replace(base, **dict(zip(switches, setting, strict=True))) if switches else base)
            except uc.errors.InvalidArgument:
                continue


pytestmark = pytest.mark.filterwarnings("ignore:.*has no bound for its rounding")
FORMS = [form for name, cls in classes().items() for form in forms(name, cls)]
COMMON = {pa.int64(), pa.float64(), pa.string()}
EXAMPLES = min(settings.default.max_examples // 8, 100)
TURNS = 10


@pytest.mark.parametrize("place", share(range(len(FORMS))), ids=lambda place: repr(FORMS[place]))
def test_laws(place: int) -> None:
    """A few of the types that a form takes, others for each form."""
    chosen = typings(FORMS[place])
    for columns in chosen[place % TURNS :: TURNS] or chosen[:1]:
        check_laws(FORMS[place], values=columns, max_examples=EXAMPLES // 2)


@pytest.mark.soak
@pytest.mark.parametrize("combiner", FORMS, ids=repr)
def test_laws_over_each_type(combiner: uc.Combiner) -> None:
    for columns in typings(combiner):
        most = EXAMPLES if COMMON & set(columns.values()) else EXAMPLES // 3
        check_laws(combiner, values=columns, max_examples=most)


def typings(combiner: uc.Combiner) -> list[dict[str, pa.DataType]]:
    """Choices of column types that a combiner takes."""
    chosen = [subject.columns for subject, _ in subjects(combiner)]
    assert chosen
    return chosen


@pytest.mark.parametrize(("combiner", "values"), MADE + SCALAR, ids=repr)
def test_laws_of_what_is_made_of_others(combiner: uc.Combiner, values: Any) -> None:
    check_laws(combiner, values=values, max_examples=EXAMPLES)


def test_every_entry_is_of_an_exported_combiner() -> None:
    assert set(ARGUMENTS) <= set(classes())
    assert {"Sum", "Max", "Count", "Struct", "PerKey"} <= set(classes())


def test_switches_are_found() -> None:
    assert {repr(form) for form in forms("Max", uc.Max)} == {"Max('x')", "Max('x', retractable=False)"}


def test_a_new_combiner_without_an_entry_is_seen() -> None:
    class New(uc.Count):
        def __init__(self, input: str, edges: list[int]) -> None: ...

    with pytest.raises(LookupError, match="New is exported and has no entry"):
        bases("New", New)
