"""The differences of two fingerprints, as sentences for people: what a changed flow would do to its old checkpoint.

Guarded by tests/flows/fingerprint/test_fingerprint.py and tests/sparkops/test_restarts.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from ...errors import InvalidArgument, StateMismatch, nearest
from ...panes.state.pane_type import with_pane_types_of_now
from .flow import NAMELESS, Entry, Fingerprint

PARTS = {
    "time": "its event times",
    "messages": "the format of its messages",
    "steps": "the steps before it",
    "code": "its functions",
    "reads": "the types of its columns",
    "after": "the steps after it",
    "shows": "the columns that it shows",
}
"""The parts that an earlier version did not note, in words."""

_APART = frozenset({"stage", "filters", "lateness", "future", "typed", *PARTS})
"""The parts that are compared in a way of their own, or that decide nothing."""


@dataclass(frozen=True)
class Change:
    """A difference of two pipelines."""

    text: str
    same: str | None = None
    """The step of which `same=` can say that it means the same; None if nothing can."""


def differences(stored: Fingerprint, now: Fingerprint, same: Collection[str] = ()) -> str | None:
    """A sentence that names the differences of a step; None if the pipeline can continue from its state."""
    return refusal([f"in stage {now['stage']}: "], [changes(stored, now, same)])


def refusal(places: Sequence[str], changed: Sequence[Sequence[Change]]) -> str | None:
    """The sentence that refuses the changes of all places; None without one."""
    told = told_changes(places, changed)
    if not told:
        return None
    accepted = tuple(dict.fromkeys(one.same for some in changed for one in some if one.same))
    remedies = ["go on with the pipeline as it was", "take its state over with uc.evolve(...)"]
    if all(one.same for some in changed for one in some):
        remedies.append(f"give same={accepted!r} if its results are those of before")
    return (
        f"the checkpoint was written by another pipeline, {'; '.join(told)}; "
        f"{', '.join(remedies[:-1])}, or {remedies[-1]}"
    )


def told_changes(places: Sequence[str], changed: Sequence[Sequence[Change]]) -> list[str]:
    """The changes of each place in words, for the places that have some."""
    return [
        f"{place}{'; '.join(dict.fromkeys(one.text for one in some))}"
        for place, some in zip(places, changed, strict=True)
        if some
    ]


def changes(stored: Fingerprint, now: Fingerprint, same: Collection[str] = ()) -> list[Change]:
    """The changes of a step that its state does not survive."""
    stored = with_pane_types_of_now(stored)
    try:
        return list(_changes(stored, now, same))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        if stored == now:
            raise
        raise StateMismatch(
            f"the checkpoint does not say what pipeline wrote it, in stage {now['stage']}: it is damaged or was not "
            "written by this library, so restore it from a copy"
        ) from None


def _changes(stored: Fingerprint, now: Fingerprint, same: Collection[str]) -> Iterator[Change]:
    if kind_of(stored) != kind_of(now):
        yield Change(f"it was {words_of(stored)} and is {words_of(now)}")
        return
    out = [Change(text) for text in _plain_changes(stored, now)]
    out += [Change(f"its event time was {was!r} and is {is_!r} (time=)") for was, is_ in _pairs("time", stored, now)]
    for was, is_ in _pairs("messages", stored, now):
        out.append(Change(f"it read {was or 'rows'} and reads {is_ or 'rows'} (changelog=)"))
    out += [Change(text) for text in _types(dict(stored.get("reads", ())), dict(now.get("reads", ())))]
    if (name := f"stage {number_of(now)}") not in same:
        out += [Change(text, name) for text in _code(stored.get("code", {}), now.get("code", {}))]
    for part in ("steps", "after"):
        for before, after in zip(stored.get(part, ()), now.get(part, ()), strict=False):
            out += _entries(before, after, same)
    if not out and stored.get("shows", now.get("shows")) != now.get("shows"):
        out.append(Change(f"the columns that it shows are others: {_columns(stored['shows'], now['shows'])}"))
    yield from out


def _pairs(part: str, stored: Fingerprint, now: Fingerprint) -> list[tuple[str | None, str | None]]:
    """The values of a part that differ, each as it was and is; none if an earlier version did not note it."""
    return [(was, is_) for was, is_ in zip(stored.get(part, ()), now.get(part, ()), strict=False) if was != is_]


def free_changes(stored: Fingerprint, now: Fingerprint) -> list[str]:
    """The changes of filters after which the state goes on, with earlier rows as they were let through."""
    both = zip(stored.get("filters", ()), now.get("filters", ()), strict=False)
    return [change.text for before, after in both for change in _entries(before, after, ())]


def unknown_parts(stored: Fingerprint) -> list[str]:
    """The parts that the version which wrote a fingerprint did not note, in words."""
    return [words for part, words in PARTS.items() if part not in stored]


_JOINS = {"Join": "join", "KeptJoin": "join", "JoinAsof": "as-of join", "Lookup": "lookup join"}
"""The kinds of join, by the names of their options."""


def kind_of(one: Fingerprint) -> str:
    """The kind of a step."""
    if "combiners" in one:
        return "grouping"
    step = str(one.get("step", ""))
    kind = step.partition("(")[0]
    return _JOINS.get(kind, step)


def words_of(one: Fingerprint) -> str:
    """A step in a few words."""
    match kind_of(one):
        case "grouping":
            return f"a grouping by {_typed(one['by'])}"
        case "join" | "as-of join" | "lookup join" as kind:
            return f"{'an' if kind == 'as-of join' else 'a'} {kind}"
        case "Remember":
            return "map(remember=True)"
        case "Rolled":
            return "join_rolling()" if one.get("labels") else "rolling()"
        case step:
            return {"Distinct": "distinct()", "InOrder": "in_order()", "Process": "process()"}.get(step, step.lower())


def number_of(one: Fingerprint) -> int:
    """The place of a step among all steps, from 1 on."""
    return int(str(one["stage"]).partition(" ")[0])


def steps_of(one: Fingerprint) -> int:
    """The number of steps of the pipeline."""
    return int(str(one["stage"]).rpartition(" ")[2])


def flow_changes(
    stored: Sequence[Fingerprint], now: Sequence[Fingerprint], same: Collection[str] = ()
) -> list[list[Change]]:
    """The changes of a whole flow, for each of its steps as they are now.

    A step whose source has had no rows yet has no state, so that `stored` may lack it; the others say how many there
    were.
    """
    before = {number_of(one): one for one in stored}
    if any(steps_of(one) != len(now) for one in stored):
        was, here = (_listed(some) for some in (stored, now))
        return [[Change(f"its steps were {was} and are {here}")], *([] for _ in now[1:])]
    return [changes(before[number_of(one)], one, same) if number_of(one) in before else [] for one in now]


def check_same(same: Collection[str], names: Collection[str]) -> None:
    """Raise unless each name is that of a step."""
    if isinstance(same, str):
        raise InvalidArgument(f"same= takes the names of steps as a tuple: write same=({same!r},)")
    for name in same:
        if name not in names:
            raise InvalidArgument(f"same= names {name!r}, and no step of the flow is called so: {nearest(name, names)}")


def _listed(some: Sequence[Fingerprint]) -> str:
    return ", ".join(words_of(one) for one in sorted(some, key=number_of))


def _plain_changes(stored: Fingerprint, now: Fingerprint) -> Iterator[str]:
    """The differences of all parts that are compared as they are."""
    names = [name for name in {**now, **stored} if name not in _APART and stored.get(name) != now.get(name)]
    if "function" in names and "code" in stored:
        names.remove("function")  # it is compared by its code
    if len(names) > 1 and "near" in names:
        names.remove("near")  # it follows from the window, the keys and the combiners
    for name in names:
        text = _difference(name, stored.get(name), now.get(name))
        if text is not None:
            yield text


def _difference(name: str, stored: Any, now: Any) -> str | None:
    match name:
        case "combiners":
            return _combiners(dict(stored), dict(now))
        case "together":
            words = {True: "together with other flows", None: "in a query of its own"}
            return f"it ran {words[stored]} and runs {words[now]}"
        case "shards":
            return f"it had shards={stored} and has shards={now} (from shards= or spark.sql.shuffle.partitions)"
        case "whole_keys":
            placement = {True: "all windows of a key in one shard", False: "windows of a key in several shards"}
            causes = (
                "rows left out by foreach_batch() or left_out=, processing_time=, or late='emit' of an earlier version"
            )
            return f"it kept {placement[stored]} and keeps {placement[now]} ({causes})"
        case "near":
            spans = [f"that start within {span or 0} microseconds" for span in (stored, now)]
            return f"it kept windows of a key in one shard {spans[0]}, and keeps those {spans[1]} (another version)"
        case "found_by":
            return "an earlier version found the rows that it remembers by other hashes"
        case "planned":
            was, is_ = (_orders(one or [False] * len(stored or now)) for one in (stored, now))
            return f"it read files {was} and reads them {is_}, so that it would not know which are read (order=)"
        case "inputs":
            return None if _same_inputs(stored, now) else f"its inputs were {_inputs(stored)}, and are {_inputs(now)}"
        case "by":
            return f"it was by {_typed(stored)} and is by {_typed(now)}"
        case "columns":
            return _columns(stored, now)
        case "broadcast" if stored and now:
            return f"its broadcast rows: {_columns(stored, now)}"
        case "broadcast":
            return f"it had {'' if stored else 'no '}broadcast rows and has {'some' if now else 'none'} (broadcast=)"
        case _:
            return f"{name} was {stored} and is {now}"


def _orders(planned: Sequence[bool]) -> str:
    return ", ".join("in an order" if one else "as Spark lists them" for one in planned)


def _combiners(stored: Mapping[str, str], now: Mapping[str, str]) -> str:
    added = [f"{key}={now[key]}" for key in now if key not in stored]
    removed = [f"{key}={stored[key]}" for key in stored if key not in now]
    told = []
    if added:
        told.append(f"{', '.join(added)} was added, and the state lacks it for earlier rows")
    if removed:
        told.append(f"{', '.join(removed)} was removed")
    told += [f"{key}={stored[key]} is now {now[key]}" for key in now if stored.get(key, now[key]) != now[key]]
    return "; ".join(told) or f"the combiners were in the order {list(stored)} and are in {list(now)}"


def _columns(stored: Sequence[Any], now: Sequence[Any]) -> str:
    """The columns of the rows of a step, or of both inputs of a join."""
    if stored and stored[0] and not isinstance(stored[0][0], str):
        both = zip(("left", "right"), stored, now, strict=True)
        return "; ".join(f"{side} {_columns(was, is_)}" for side, was, is_ in both if was != is_)
    before, after = dict(stored), dict(now)
    told = [f"column {name!r} is new" for name in after if name not in before]
    told += [f"column {name!r} is gone" for name in before if name not in after]
    told += list(_types(before, after))
    return "; ".join(told) or f"its columns were in the order {list(before)} and are in {list(after)}"


def _types(stored: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name, kind in now.items():
        if stored.get(name, kind) != kind:
            yield f"column {name!r} was {stored[name]} and is {kind}"


def _code(stored: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name, content in now.items():
        if name in stored and not same_content(stored[name], content):
            yield f"{name} has the name that it had, and computes otherwise ({_other(stored[name], content)})"


def same_content(stored: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """True if two functions have the same text, or the same code by the same version of Python."""
    return bool(stored["source"] == now["source"] or stored["code"] == now["code"])


def _other(stored: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The parts of two functions that differ."""
    before, after = stored["parts"], now["parts"]
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return f"changed: {', '.join(names)}" if names else "it has no source, and cannot be compared"


def _entries(stored: Sequence[Entry], now: Sequence[Entry], same: Collection[str]) -> Iterator[Change]:
    """The changes from some transforms to others."""
    before_words, after_words = ([str(entry["is"]) for entry in some] for some in (stored, now))
    pairs = SequenceMatcher(a=before_words, b=after_words, autojunk=False)
    for what, i, end_i, j, end_j in pairs.get_opcodes():
        if what == "equal":
            for before, after in zip(stored[i:end_i], now[j:end_j], strict=True):
                if after["name"] not in same:
                    yield from _entry(before, after)
            continue
        for entry in stored[i:end_i]:
            yield Change(f"{entry['name']} is gone ({_shown(entry)})")
        for entry in now[j:end_j]:
            yield Change(f"{entry['name']} is new ({_shown(entry)})")


def _entry(stored: Entry, now: Entry) -> Iterator[Change]:
    name, before, after = now["name"], stored["what"], now["what"]
    same = None if name == NAMELESS else name
    for key in {**before, **after}:
        was, is_ = before.get(key), after.get(key)
        if isinstance(was, Mapping) and isinstance(is_, Mapping):
            if not same_content(was, is_):
                yield Change(f"the function of {_part(name, key)} computes otherwise ({_other(was, is_)})", same)
        elif was != is_:
            yield Change(f"{_part(name, key)} was {_text(was)} and is {_text(is_)}", same)


def _part(name: str, key: str) -> str:
    return name if key in ("function", "predicate") else f"{key} of {name}"


def _shown(entry: Entry) -> str:
    return ", ".join(f"{key}: {_text(value)}" for key, value in entry["what"].items())


def _text(value: Any) -> str:
    return "not there" if value is None else "a function" if isinstance(value, Mapping) else str(value)


def _same_inputs(stored: Sequence[str] | None, now: Sequence[str] | None) -> bool:
    """True if the inputs have their names and places; an earlier version named columns that no step reads too."""
    if stored is None or now is None or len(stored) != len(now):
        return False
    pairs = [[text.partition("(") for text in both] for both in zip(stored, now, strict=True)]
    return all(
        before[0] == after[0] and set(after[2].rstrip(")").split(", ")) <= set(before[2].rstrip(")").split(", "))
        for before, after in pairs
    )


def _inputs(names: Sequence[str] | None) -> str:
    return ", ".join(names) if names else "one source alone"


def _typed(columns: Any) -> str:
    return "(" + ", ".join(f"{name}: {kind}" for name, kind in columns) + ")"


__all__ = [
    "Change",
    "changes",
    "check_same",
    "differences",
    "flow_changes",
    "free_changes",
    "number_of",
    "refusal",
    "unknown_parts",
    "words_of",
]
