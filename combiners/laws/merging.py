"""Laws about cutting, placing and merging accumulators as windows, shards and workers do it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..algebra import Accumulators, Capability
from ..combiner import Bound
from ..rows.groups import Groups
from .cases import Case, stacked
from .compare import bits
from .examples import KEYS, Row

MOST_GROUPS = 2**16 + 9
"""The number of groups of an example that is tried once: more than two bytes can count."""


def group_maps(case: Case) -> None:
    """Any accumulators, some of them twice and some not at all, merged into any groups, some of them empty."""
    layout = case.example.layout
    places = [place for place, _ in layout.picks]
    codes = [group % layout.into for _, group in layout.picks]
    whole = stacked(*(case.batch(name) for name in "abc"))
    picks = tuple(array.take(pa.array(places, pa.int64())) for array in whole)
    merged = case.fn.merge(Groups(np.array(codes, np.int64), layout.into), picks)
    names = [f"{'abc'[place // KEYS]}{place % KEYS}" for place in places]
    rows: list[Row] = []
    for place, code in zip(places, codes, strict=True):
        batch = (case.a, case.b, case.c)[place // KEYS]
        rows += [(code, *rest) for group, *rest in batch if group == place % KEYS]  # type: ignore[misc]
    text = f"merge of the groups [{', '.join(names)}] of a, b, c into {codes} of {layout.into}"
    case.same(merged, case.add(rows, count=layout.into), text, "add(their rows in these groups)", len(codes))


def trees(case: Case) -> None:
    """Rows cut into any batches and merged two by two in any order, each from a slice."""
    layout = case.example.layout
    rows = case.a + case.b + case.c
    batches: dict[int, list[Row]] = {}
    for i, row in enumerate(rows):
        batches.setdefault(layout.leaves[i % len(layout.leaves)], []).append(row)
    left = [(f"rows {leaf}", case.add(batch)) for leaf, batch in sorted(batches.items())]
    turn = 0
    while len(left) > 1:
        place = layout.merges[turn % len(layout.merges)]
        first = left.pop(place % len(left))
        second = left.pop(place // 4 % len(left))
        pair = stacked(second[1], first[1], second[1])
        cut = tuple(array.slice(KEYS, 2 * KEYS) for array in pair)
        merged = case.fn.merge(Groups.repeated(KEYS, 2), cut)
        left.append((f"({first[0]} + {second[0]})", merged))
        turn += 1
    for text, tree in left:
        case.same(tree, case.add(rows), text, "add(a and b and c)")


def slices(case: Case) -> None:
    """Columns and accumulators that are slices of longer arrays, and columns in several chunks."""
    layout = case.example.layout
    a, b = case.batch("a"), case.batch("b")
    text = f"whose arrays are slices from {layout.before}"
    others = [row for row in (case.b + case.a + case.c) for _ in range(9)][:9] or [(0, 1, _nothing(case))]
    before, after = others[: layout.before], others[: layout.after]
    whole = case.subject.arrays([*before, *case.a, *after])
    cut = [array.slice(len(before), len(case.a)) for array in whole]
    case.same(case.add_columns(case.a, cut), a, f"add(a) {text}", "add(a)")
    if isinstance(case.subject.fn, Bound):
        half = len(case.a) // 2
        chunked = [pa.chunked_array([array.slice(0, half), array.slice(half)], array.type) for array in cut]
        case.same(case.add_columns(case.a, chunked), a, "add(a) whose columns are in two chunks", "add(a)")
    both = _sliced(stacked(a, b), layout.before, layout.after)
    case.same(case.fn.merge(Groups.repeated(KEYS, 2), both), case.both, f"a + b {text}", "a + b")
    short, long = _sliced(b, layout.after, 0), _sliced(case.both, layout.before, layout.after)
    if case.subject.capability > Capability.MONOID:
        case.same(case.fn.negate(short), case.fn.negate(b), f"negate(b) {text}", "negate(b)")
        left = case.fn.uncombine(long, short)
        case.same(left, case.fn.uncombine(case.both, b), f"(a + b) - b {text}", "(a + b) - b")
    if case.results(long) != case.results(case.both):
        shown = case.results(long), case.results(case.both)
        if repr(shown[0]) != repr(shown[1]):
            case.fail(f"extract(a + b) {text}", shown[0], "extract(a + b)", shown[1])


def _nothing(case: Case) -> tuple[None, ...]:
    return (None,) * len(case.subject.columns)


def _sliced(accumulators: Accumulators, before: int, after: int) -> Accumulators:
    """The same accumulators as a slice of longer arrays that begin and end with some of them."""
    count = len(accumulators[0])
    places = np.concatenate([np.arange(before) % count, np.arange(count), np.arange(after) % count])
    return tuple(array.take(pa.array(places)).slice(before, count) for array in accumulators)


def ways_of_groups(case: Case) -> None:
    """Groups given by runs of their rows instead of by codes; no weights instead of weights of 1."""
    if not case.a:
        return
    present, codes = np.unique([row[0] for row in case.a], return_inverse=True)
    groups, count = Groups(codes.astype(np.int64), len(present)), len(present)
    weights, arrays = np.array([row[1] for row in case.a], np.int64), case.subject.arrays(case.a)
    by_codes = case.add_groups(groups, arrays, weights)
    for stable in (True, False):
        by_runs = Groups.of_runs(groups.order, groups.sizes, stable=stable)
        case.same(case.add_groups(by_runs, arrays, weights), by_codes, "add(a) by runs", "add(a) by codes")
    a, b = (tuple(array.take(pa.array(present)) for array in case.batch(name)) for name in "ab")
    runs = Groups.repeated(count, 2)
    merged = case.fn.merge(Groups.of_runs(runs.order, runs.sizes), stacked(a, b))
    case.same(merged, case.fn.merge(runs, stacked(a, b)), "a + b by runs", "a + b by codes")
    ones = case.add_groups(groups, arrays, np.ones(len(case.a), np.int64))
    case.same(case.add_groups(groups, arrays, None), ones, "add(a) without weights", "add(a) with weights 1")


def many_groups(case: Case) -> None:
    """The example's groups placed among hundreds of others."""
    if case.example.layout.many:
        among(case, case.example.layout.many)


def among(case: Case, count: int) -> None:
    """Each group of a placed twice among `count` groups, far apart and out of order; the other groups are empty."""
    places = np.array([count - 1, 255, 1, 0, 256, count - 3])
    twice = [(int(places[group + KEYS * turn]), *rest) for group, *rest in case.a for turn in (1, 0)]
    wide = case.add(twice, count=count)  # type: ignore[arg-type]
    a, at = case.batch("a"), pa.array(places)
    text = f"in {count} groups"
    case.same(tuple(array.take(at) for array in wide), stacked(a, a), f"add(a) {text}", "add(a)")
    spread = case.fn.merge(Groups(places, count), stacked(a, a))
    if bits(spread) != bits(wide):
        case.same(spread, wide, f"a merged {text}", f"add(a) {text}")
    codes = np.arange(count) % KEYS
    codes[places] = np.tile(np.arange(KEYS), 2)
    case.same(case.fn.merge(Groups(codes, KEYS), wide), case.merge(a, a), f"a + a merged from {text[3:]}", "a + a", 2)
    if case.subject.capability > Capability.MONOID:
        gone = tuple(array.take(at) for array in case.fn.uncombine(wide, wide))
        case.same(gone, case.fn.uncombine(stacked(a, a), stacked(a, a)), f"a - a {text}", "a - a", 2)


def elsewhere(case: Case) -> None:
    """A copy of the combiner, as in another process, goes on with the accumulators that this one made."""
    other = case.subject.elsewhere
    if other is None:
        return
    merged = case.fn.run("merge", other.merge, Groups.repeated(KEYS, 2), stacked(case.batch("a"), case.batch("b")))
    case.same(merged, case.both, "a + b by a copy of the combiner that has seen no rows", "a + b")
    if not case.subject.extracts:
        return
    theirs, ours = case.extract(case.both, other.extract), case.extract(case.both)
    if theirs is not None and ours is not None and repr(theirs.to_pylist()) != repr(ours.to_pylist()):
        text = "extract(a + b) by a copy of the combiner that has seen no rows"
        case.fail(text, theirs.to_pylist(), "extract(a + b)", ours.to_pylist())


def large_sums(case: Case) -> None:
    """2**54 times a, plus b: a state that holds whole numbers as floats loses b."""
    if not case.subject.seen.get("fixed"):
        return
    large = case.batch("a")
    for _ in range(54):
        large = case.merge(large, large)
    b = case.batch("b")
    text = "2**54 * a"
    case.same(case.fn.uncombine(case.merge(large, b), large), b, f"({text} + b) - {text}", "b")
    case.same(
        case.merge(case.merge(large, b), b), case.merge(large, case.merge(b, b)),
        f"({text} + b) + b", f"{text} + (b + b)",
    )  # fmt: skip
