"""Values that are called with too few, too many or strange arguments are refused with a sentence of ours."""

from __future__ import annotations

import copy
import inspect
import pickle
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from seeds import share

import uncombine as uc
from uncombine.errors import InvalidArgument, NamedOptions, UncombineError

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64(), "k": pa.string()})

ROWS = pa.table({"ts": [0, 1, 2], "x": [3, 1, None], "k": ["a", None, "b"]}).cast(SCHEMA)


def classes() -> dict[str, type]:
    """The public classes whose values a user writes: combiners, windows, triggers, strategies, entries, formats."""
    public = {name: getattr(uc, name) for name in uc.__all__}
    public |= {f"changelog.{name}": getattr(uc.changelog, name) for name in uc.changelog.__all__}
    values = (NamedOptions,)
    return {
        name: value
        for name, value in public.items()
        if inspect.isclass(value) and issubclass(value, values) and not inspect.isabstract(value)
    }


CLASSES = classes()


def parameters(kind: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(kind.__init__).parameters.values())[1:]


def by_place(kind: Any) -> list[inspect.Parameter]:
    return [p for p in parameters(kind) if p.kind is p.POSITIONAL_OR_KEYWORD]


def takes_any(kind: Any) -> bool:
    return any(p.kind is p.VAR_POSITIONAL for p in parameters(kind))


def written(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.KEYWORD_ONLY:
        return f"{parameter.name}=..."
    return {"input": repr("x")}.get(parameter.name, parameter.name)


def refused(call: Callable[[], object], sort: type[Exception] = UncombineError) -> str:
    with pytest.raises(sort) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert "__init__" not in text
    return text


def test_the_families_are_there() -> None:
    families = {uc.TopK, uc.Sessions, uc.AfterCount, uc.PerSource, uc.Elements, uc.changelog.Debezium}
    assert families <= set(CLASSES.values())


@pytest.mark.parametrize("name", CLASSES)
def test_a_call_with_other_arguments_is_refused(name: str) -> None:
    kind: Any = CLASSES[name]
    own = kind.__name__
    places, required = by_place(kind), [p for p in parameters(kind) if p.default is p.empty and p.kind < p.VAR_KEYWORD]
    required = [p for p in required if p.kind is not p.VAR_POSITIONAL]
    for count in range(len(required)):
        text = refused(lambda count=count: kind(*["x"] * count), InvalidArgument)  # type: ignore[misc]
        column = required[count].name == "input"  # as each combiner calls it
        assert text.startswith(f"{own}() needs {'a column' if column else repr(required[count].name)}")
        assert f"write {own}({', '.join(map(written, required))})" in text
    if not takes_any(kind):
        text = refused(lambda: kind(*["x"] * (len(places) + 1)), InvalidArgument)
        assert text.startswith(f"{own}() takes ")
        assert text.partition(", but was given ")[2].startswith(str(len(places) + 1))
    if places:
        text = refused(lambda: kind("x", **{places[0].name: "x"}), InvalidArgument)
        assert text.startswith(f"{own}() was given {places[0].name!r} twice")
    if not any(p.kind is p.VAR_KEYWORD for p in parameters(kind)):
        arguments = ["x"] * len(required)
        text = refused(lambda: kind(*arguments, bogus=1), InvalidArgument)
        assert text.startswith(f"{own}() has no option 'bogus'")


STRANGE: list[Any] = [
    None, 5, -1, 0, 2**70, 0.5, float("nan"), float("inf"), True, "", "x", "no such", "1 minute", "-1 minute", b"x", [],
    ["x"], ["x", "k"], ("x", 3), {}, {"x": 1}, {"x"}, object(), len, lambda: 5, uc.Sum("x"), uc.Sum, uc.col("x"),
    uc.col("no such") > 2, uc.AfterCount(1), uc.Fixed("1 minute"), pa.int64(), range(3), Ellipsis,
]  # fmt: skip


def use(value: Any) -> None:
    """Combine a few rows, or run a script, with a value that was made."""
    flow = uc.flow(SCHEMA)
    windows: dict[str, Any] = {"window": uc.Fixed("1 minute")}
    if isinstance(value, uc.Combiner):
        uc.aggregate(ROWS, result=value)
    elif isinstance(value, uc.Window):
        windows["window"] = value
    elif isinstance(value, uc.Trigger):
        windows["trigger"] = value
    elif isinstance(value, uc.WatermarkStrategy):
        flow = uc.flow(SCHEMA, watermark=value)
    repr(value)
    script = [value] if isinstance(value, uc.Clock | uc.Elements | uc.Watermark) else []
    flow.window(**windows).combine(n=uc.Count()).run(script)


@pytest.mark.weekly
@pytest.mark.parametrize("name", share(CLASSES))
def test_strange_values_are_refused_or_right(name: str) -> None:
    """Each argument in turn is a strange one, and some calls have only strange ones."""
    kind: Any = CLASSES[name]
    draw = random.Random(f"37 {name}")
    names = [p.name for p in parameters(kind) if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    calls = [{name: value} for name in names for value in STRANGE]
    calls += [{name: draw.choice(STRANGE) for name in names if draw.random() < 0.7} for _ in range(100)]
    usual = {p.name: "x" for p in parameters(kind) if p.default is p.empty and p.name in names}
    told: list[str] = []
    for options in calls:
        for more in ({**usual, **options}, options):
            try:
                use(kind(**more))
            except UncombineError as error:
                told.append(str(error))
            except Exception as error:
                raise AssertionError(f"{name}(**{more!r}) raised {type(error).__name__}: {error}") from error
    assert [text for text in told if "\n" in text] == []


@pytest.mark.parametrize("value", [uc.TopK("x", 2), uc.Fixed("1 minute"), uc.AfterCount(3), uc.FirstOf(uc.Always())])
def test_values_travel_without_their_arguments(value: object) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(value, protocol)) == value
    assert copy.copy(value) == copy.deepcopy(value) == value


def test_a_class_of_the_user_makes_its_own_values() -> None:
    class Own(uc.UserTrigger):
        def __new__(cls, n: int) -> Own:
            return super().__new__(cls)

        def __init__(self, n: int) -> None:
            self.n = n

    assert Own(3).n == 3

    class Named(uc.UserTrigger):
        def __init__(self, n: int, *, name: str) -> None:
            self.n, self.name = n, name

    assert Named(3, name="x").name == "x"
    assert refused(lambda: Named(3)) == "Named() needs 'name', but was given 1 argument: write Named(n, name=...)"  # type: ignore[call-arg]
