"""The laws themselves, each a few lines over one example, in the order in which they are tried.

A fault that makes later laws fail for the wrong reason is looked for first: if `extract` changes its accumulators,
the message says so, and not that the combiner is not associative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..algebra import Accumulators, Capability
from ..combiner import Bound
from ..rows.groups import Groups
from .cases import Case, stacked
from .compare import bits, plain
from .examples import KEYS, Row
from .expected import as_expected, unseen
from .merging import elsewhere, group_maps, large_sums, many_groups, slices, trees, ways_of_groups
from .whole import whole_groups

_FEW_COPIES = 8
_ONE_BY_ONE = 8
_ANY = Capability.MONOID


@dataclass(frozen=True)
class Law:
    """A law by name, as an equation, with the check that raises on an example that breaks it."""

    name: str
    equation: str
    check: Callable[[Case], None]
    needs: Capability = Capability.MONOID
    multiplies: bool = False
    """True if the law adds up more than two or three times the rows of the example."""
    every: int = 1
    """The law is tried on one example in this many."""

    def hold(self, case: Case) -> None:
        """Raise unless the law holds on this example."""
        case.law, case.equation = self.name, self.equation
        self.check(case)


def _form(case: Case) -> None:
    """Every operation gives one array a field, of the field's type, valid, one entry a group."""
    a = _formed(case, "add(a)", case.batch("a"))
    b = _formed(case, "add(b)", case.batch("b"))
    _formed(case, "zero", case.zero)
    both = _formed(case, "a + b", case.both)
    if case.subject.capability > Capability.MONOID:
        _formed(case, "negate(a)", case.fn.negate(a))
        _formed(case, "(a + b) - b", case.fn.uncombine(both, b))
    if case.subject.extracts:
        results = case.extract(a)
        if results is not None:
            fn = case.subject.fn
            output = fn.output if isinstance(fn, Bound) else results.type
            if (results.type, len(results)) != (output, KEYS):
                case.fail("extract(a)", f"{len(results)} {results.type}", "the declared type", f"{KEYS} {output}")
            results.validate(full=True)

    none = _formed(case, "add(no rows) to no groups", case.add([], count=0), 0)
    _formed(case, "merge of nothing to no groups", case.fn.merge(Groups(np.empty(0, np.int64), 0), none), 0)
    if case.subject.capability > Capability.MONOID:
        _formed(case, "negate(nothing)", case.fn.negate(none), 0)
        _formed(case, "nothing - nothing", case.fn.uncombine(none, none), 0)
    case.extract(none) if case.subject.extracts else None


def _formed(case: Case, text: str, accumulators: Accumulators, count: int = KEYS) -> Accumulators:
    wanted = [f"{count} {field.type}" for field in case.fn.fields]
    if not isinstance(accumulators, tuple) or not all(isinstance(array, pa.Array) for array in accumulators):
        case.fail(text, repr(accumulators), "the declared tuple of Arrow arrays", ", ".join(wanted))
    shapes = [f"{len(array)} {array.type}" for array in accumulators]
    if shapes != wanted:
        case.fail(text, ", ".join(shapes), "the declared fields", ", ".join(wanted))
    for array in accumulators:
        array.validate(full=True)
    return accumulators


def _unchanged_inputs(case: Case) -> None:
    columns = case.subject.arrays(case.a)
    codes = np.array([row[0] for row in case.a], np.int64)
    weights = np.array([row[1] for row in case.a], np.int64)
    before = bits(tuple(columns)), codes.copy(), weights.copy()
    case.add_groups(Groups(codes, KEYS), columns, weights)
    after = bits(tuple(columns)), codes, weights
    for name, was, now in zip(("column", "group codes", "weights"), before, after, strict=True):
        if repr(was) != repr(now):
            case.fail(f"the {name} before add", was, "and after", now)
    a, b = case.batch("a"), case.batch("b")
    operations: dict[str, Callable[[], object]] = {"merge": lambda: case.fn.merge(Groups.repeated(KEYS, 1), a)}
    if case.subject.capability > Capability.MONOID:
        operations |= {"negate": lambda: case.fn.negate(a), "uncombine": lambda: case.fn.uncombine(a, b)}
    for name, run in operations.items():
        was, shown = bits(a) + bits(b), plain(a)
        run()
        if bits(a) + bits(b) != was:
            case.fail(f"the accumulators before {name}", shown, "and after", plain(a))


def _unchanged_by_extract(case: Case) -> None:
    a = case.add(case.a)
    was, shown = bits(a), plain(a)
    case.results(a)
    if bits(a) != was:
        case.fail("the accumulators before extract", shown, "and after", plain(a))


def _determinism(case: Case) -> None:
    a = case.batch("a")
    first, second = case.results(a), case.results(a)
    if repr(first) != repr(second):
        case.fail("extract(a)", first, "extract(a) a second time", second)
    again = case.add(case.a)
    if bits(again) != bits(a):
        case.fail("add(a)", plain(a), "add(a) a second time", plain(again))


def _identity(case: Case) -> None:
    a, zero = case.batch("a"), case.zero
    case.same(case.merge(zero, a), a, "0 + a", "a")
    case.same(case.merge(a, zero), a, "a + 0", "a")
    case.same(case.add([]), zero, "add(no rows)", "0")


def _associativity(case: Case) -> None:
    a, b, c = (case.batch(name) for name in "abc")
    left = case.merge(case.both, c)
    case.same(left, case.merge(a, case.merge(b, c)), "(a + b) + c", "a + (b + c)")
    case.same(case.merge(a, b, c), left, "a + b + c in one merge", "(a + b) + c")


def _commutativity(case: Case) -> None:
    a, b = case.batch("a"), case.batch("b")
    case.same(case.both, case.merge(b, a), "a + b", "b + a")
    case.same(case.add(case.a[::-1]), a, "add(the rows of a backwards)", "add(a)")


def _homomorphism(case: Case) -> None:
    case.same(case.both, case.add(case.a + case.b), "add(a) + add(b)", "add(a and b)")


def _batches(case: Case) -> None:
    running = case.zero
    for row in case.a[:_ONE_BY_ONE]:
        running = case.merge(running, case.add([row]))
    if case.a[_ONE_BY_ONE:]:
        running = case.merge(running, case.add(case.a[_ONE_BY_ONE:]))
    case.same(running, case.batch("a"), "the rows of a added one by one", "add(a)")


def _grouping(case: Case) -> None:
    for group in (0, KEYS - 1):
        text = f"group {group} by itself", f"group {group} among the others"
        alone = []
        for name, rows in (("a", case.a), ("b", case.b)):
            mine = case.add([(0, *row[1:]) for row in rows if row[0] == group], count=1)
            alone.append(mine)
            _same_here(case, mine, _cut(case.batch(name), group), f"add({name}), {text[0]}", f"add({name}), {text[1]}")
        merged = case.merge(*alone)
        _same_here(case, merged, _cut(case.both, group), f"a + b, {text[0]}", f"a + b, {text[1]}")
        cut = case.merge(_cut(case.batch("a"), group), _cut(case.batch("b"), group))
        _same_here(case, cut, merged, f"a + b of slices, {text[0]}", f"a + b, {text[0]}")
        if case.subject.extracts and case.extract(case.both) is not None:
            result = [values[group : group + 1] for values in case.results(case.both)]
            case.close(case.results(merged), result, f"extract(a + b), {text[0]}", f"extract(a + b), {text[1]}")


def _cut(accumulators: Accumulators, group: int) -> Accumulators:
    """The accumulator of one group as slices, which must work as well as whole arrays."""
    return tuple(array.slice(group, 1) for array in accumulators)


def _same_here(case: Case, left: Accumulators, right: Accumulators, left_text: str, right_text: str) -> None:
    """Do as `Case.same` does, for the accumulator of one group."""
    if case.subject.capability is not Capability.GROUP:
        case.close(case.results(left), case.results(right), f"the result of {left_text}", f"of {right_text}")
    elif bits(left) != bits(right):
        case.fail(left_text, plain(left), right_text, plain(right))


def _round_trip(case: Case) -> None:
    a = case.batch("a")
    sink = pa.BufferOutputStream()
    batch = pa.RecordBatch.from_arrays(list(a), schema=pa.schema(list(case.fn.fields)))
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pa.ipc.open_stream(sink.getvalue()) as reader:
        back = tuple(reader.read_next_batch().columns)
    if bits(back) != bits(a):
        case.fail("a read back from Arrow's stream format", plain(back), "a", plain(a))
    case.same(case.merge(back, back), case.merge(a, a), "a + a of a read back", "a + a")
    if repr(case.results(back)) != repr(case.results(a)):
        case.fail("extract(a read back)", case.results(back), "extract(a)", case.results(a))


def _weights(case: Case) -> None:
    a = case.batch("a")
    weightless = [(group, 0, values) for group, _, values in case.b]
    case.same(case.add(case.a + weightless), a, "add(a and b with weights 0)", "add(a)")
    copies = [_copies(case, [row for row in case.a if sign * row[1] > 0]) for sign in (1, -1)]
    expected = copies[0]
    if any(row[1] < 0 for row in case.a):
        expected = case.fn.uncombine(expected, copies[1])
    case.same(a, expected, "add(a)", "add(each row, repeated by its weight)")


def _copies(case: Case, rows: list[Row]) -> Accumulators:
    """The accumulators of rows repeated by their weights and added without weights: heavy rows by doubling."""
    light = [row for row in rows if abs(row[1]) <= _FEW_COPIES for _ in range(abs(row[1]))]
    heavy = [row for row in rows if abs(row[1]) > _FEW_COPIES]
    whole = case.add(light, weighed=False)
    if not heavy:
        return whole
    count = len(heavy)
    groups, weights = np.array([row[0] for row in heavy]), np.array([abs(row[1]) for row in heavy])
    power = case.add([(i, 1, row[2]) for i, row in enumerate(heavy)], weighed=False, count=count)
    while weights.any():
        odd = np.flatnonzero(weights & 1)
        addends = tuple(array.take(pa.array(odd)) for array in power)
        codes = np.concatenate([np.arange(KEYS), groups[odd]])
        whole = case.fn.merge(Groups(codes, KEYS), stacked(whole, addends))
        weights >>= 1
        if weights.any():
            power = case.fn.merge(Groups.repeated(count, 2), stacked(power, power))
    return whole


def _inverse(case: Case) -> None:
    a, b = case.batch("a"), case.batch("b")
    case.same(case.fn.uncombine(case.both, b), a, "(a + b) - b", "a")
    case.same(case.merge(case.both, case.fn.negate(b)), a, "(a + b) + (-b)", "a")
    case.same(case.fn.uncombine(case.both, case.both), case.zero, "(a + b) - (a + b)", "0")
    case.same(case.fn.uncombine(a, case.zero), a, "a - 0", "a")
    if case.subject.capability is Capability.GROUP:
        negative = case.fn.negate(b)
        case.same(case.fn.uncombine(case.zero, b), negative, "0 - b", "-b")
        case.same(case.fn.uncombine(a, case.both), negative, "a - (a + b)", "-b")
        case.same(case.fn.negate(negative), b, "-(-b)", "b")


def _retraction(case: Case) -> None:
    a, zero = case.batch("a"), case.zero
    back = _retracted(case.a)
    case.same(case.merge(a, case.add(back)), zero, "add(a) + add(a with its weights negated)", "0")
    case.same(case.add(case.a + back), zero, "add(a and a with its weights negated)", "0")
    both = case.add(case.a + case.b + _retracted(case.b))
    case.same(both, a, "add(a and b and b with its weights negated)", "add(a)")
    exchanged = case.merge(case.add(case.a + case.b), case.add(_retracted(case.b) + case.c))
    case.same(
        exchanged, case.add(case.a + case.c),
        "add(a and b) + add(b with its weights negated, and c)", "add(a and c)",
    )  # fmt: skip


def _retracted(rows: Sequence[Row]) -> list[Row]:
    return [(group, -weight, values) for group, weight, values in rows]


def _nulls(case: Case) -> None:
    """A row that no part takes, because a value is null or the predicate is not true, has no effect."""
    ignored = unseen(case, case.a)
    if ignored.any():
        rest = [row for row, without in zip(case.a, ignored, strict=True) if not without]
        case.same(case.batch("a"), case.add(rest), "add(a)", "add(a without the rows that are left out)")


def _nan(case: Case) -> None:
    arrays = case.subject.arrays(case.a)
    if not any(pa.types.is_floating(array.type) for array in arrays):
        return
    other = case.add_columns(case.a, [_twin(array) for array in arrays])
    case.same(other, case.batch("a"), "add(a with the signs of its NaN and zeros changed)", "add(a)")


def _twin(array: pa.Array) -> pa.Array:
    """The same numbers, NaN and zeros with their sign bit flipped."""
    if not pa.types.is_floating(array.type):
        return array
    values = np.asarray(array.fill_null(1.0).to_numpy(zero_copy_only=False)).copy()
    flipped = np.isnan(values) | (values == 0)
    values[flipped] = np.negative(values[flipped])
    return pa.array(values, array.type, mask=np.asarray(array.is_null()), from_pandas=False)


def _append_only(case: Case) -> None:
    other = case.subject.append_only
    if other is None:
        return
    rows = [(group, abs(weight), values) for group, weight, values in case.a]
    cheap = Case(
        subject=replace(case.subject, fn=other),
        example=replace(case.example, a=rows),
        law=case.law,
        equation=case.equation,
    )
    case.close(
        cheap.results(cheap.add(rows)), case.results(case.add(rows)),
        "the append-only form on a with weights above zero", "the combiner itself",
    )  # fmt: skip


def _tolerance(case: Case) -> None:
    """Count the examples in which the tolerance is less than half of the largest number; see `search`."""
    some = any(value is not None for row in [*case.a, *case.b, *case.c] for value in row[2])
    largest = max(case.magnitudes[0], default=float(some))
    for view in case.subject.views:
        bound = case.tolerance(view)
        if largest > 0.0 and not view.ours:
            case.count(f"asked {view.name}")
            if bound < largest / 2:
                case.count(f"tight {view.name}")


LAWS: tuple[Law, ...] = (
    Law(
        name="declared types",
        equation="every operation gives the declared fields, one entry a group",
        check=_form,
        every=2,
    ),
    Law(
        name="tolerance",
        equation="tolerance(magnitudes, count) is at least 0, and less than the numbers added",
        check=_tolerance,
    ),
    Law(name="unchanged inputs", equation="no operation changes its arguments", check=_unchanged_inputs, every=4),
    Law(name="unchanged accumulators", equation="extract(a) leaves a as it was", check=_unchanged_by_extract, every=4),
    Law(name="determinism", equation="extract(a) = extract(a)", check=_determinism, every=4),
    Law(name="identity", equation="0 + a = a = a + 0", check=_identity, every=2),
    Law(name="commutativity", equation="a + b = b + a", check=_commutativity),
    Law(name="associativity", equation="(a + b) + c = a + (b + c)", check=_associativity, every=2),
    Law(name="homomorphism", equation="add(rows) + add(more) = add(rows and more)", check=_homomorphism),
    Law(name="batches", equation="rows in one batch = the same rows one by one", check=_batches, every=2),
    Law(name="grouping", equation="a group among others = that group by itself", check=_grouping, every=2),
    Law(
        name="group maps",
        equation="accumulators merged into any groups = their rows added to these groups",
        check=group_maps,
        needs=_ANY,
        multiplies=True,
    ),
    Law(name="trees", equation="batches merged in any order = their rows added at once", check=trees, every=2),
    Law(name="slices", equation="a slice of arrays = whole arrays", check=slices, every=2),
    Law(
        name="ways of groups",
        equation="groups by runs = groups by codes, no weights = weights of 1",
        check=ways_of_groups,
        every=4,
    ),
    Law(name="many groups", equation="groups among hundreds of others = these groups alone", check=many_groups),
    Law(name="elsewhere", equation="a copy of the combiner = the combiner", check=elsewhere, every=4),
    Law(name="round trip", equation="accumulators read back from Arrow = those written", check=_round_trip, every=4),
    Law(
        name="whole groups",
        equation="whole(rows) = extract(add(rows)) for the rows of one group",
        check=whole_groups,
        every=2,
    ),
    Law(name="nulls", equation="a row that is left out = no row", check=_nulls),
    Law(name="NaN and zero", equation="NaN = -NaN, 0.0 = -0.0", check=_nan, every=2),
    Law(
        name="weights",
        equation="weight w = w times the row, weight 0 = no row",
        check=_weights,
        needs=_ANY,
        multiplies=True,
    ),
    Law(name="uncombine", equation="(a + b) - b = a", check=_inverse, needs=Capability.CANCELLATIVE),
    Law(
        name="retraction",
        equation="add(rows) + add(rows, weight -1) = 0",
        check=_retraction,
        needs=Capability.CANCELLATIVE,
    ),
    Law(
        name="large sums",
        equation="(2**54 * a + b) - 2**54 * a = b",
        check=large_sums,
        needs=Capability.GROUP,
        multiplies=True,
        every=8,
    ),
    Law(
        name="append-only form",
        equation="append_only() has the same results on rows never retracted",
        check=_append_only,
        every=2,
    ),
    Law(name="expected results", equation="extract(add(rows)) = expected(their values)", check=as_expected),
)
