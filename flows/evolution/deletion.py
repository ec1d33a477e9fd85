"""A seed made of another one without the rows of some keys, whose panes that were shown are to be retracted.

The idea: a stored row has its key in columns, so the rows of a person are found in each step that is grouped by what
the person is known by. Where a step has no such column, the values are inside contents of other keys: what the steps
before retract is taken out of them again, and what else they hold is said. Where the next step has the column too, as
it was, it loses these rows itself, and what the step before has shown of them is not retracted in it a second time.

Guarded by tests/flows/evolution/test_deletion.py.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...combiners.expressions.expr import Expr
from ...combiners.rows.columns import flat
from ...errors import InvalidArgument
from ...panes.grouping.loaded_windows import OUTSTANDING
from ...panes.grouping.pane_columns import VALUE, WINDOW
from ...panes.rows.options import ROW
from ...panes.state.codec import pack
from ...panes.state.operator_state import OF_ALL_SHARDS
from ...panes.state.pane_type import FORMER_PANE, PANE
from ...panes.state.seed import Seed, SeedFile, SeedMaker, SeedStep, write_bytes, write_seed
from ...panes.state.store import Chunk
from ...windows.times import UTC_MICROS
from ..fingerprint.differences import kind_of, number_of, words_of
from .changed_seed import ShownFile, ShownPanes, stored_rows
from .conversion import shown_panes
from .key_filters import are_left

if TYPE_CHECKING:
    from .changed_seed import SeedWork

Condition: TypeAlias = Expr | Mapping[int, Expr]
"""A condition of the rows that leave, of every step that has its columns, or one for each of some steps."""

OUTSIDE = (
    "earlier versions of the table, and what other sinks have been given",
    "the sources, from which a new computation of the state would read the rows again",
    "the memory and the local disk of hosts that ran the query, until their processes end",
)
"""The places beside the state in which values of rows that have left may still be."""


@dataclass(frozen=True)
class Deletion:
    """The fate of the rows of some keys in a new checkpoint; `uc.checkpoint(path).delete` makes it.

    >>> import tempfile, uncombine as uc
    >>> spark, folder = uc.session(), tempfile.mkdtemp()
    >>> rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    >>> rows = uc.flow(rates, time="timestamp", watermark="1 minute")
    >>> hours = rows.window("1 hour", "each row", "retracting")
    >>> counts = hours.combine(by="value", n=uc.Count())
    >>> writer = counts.write_stream(checkpoint=f"{folder}/a").format("noop")
    >>> writer.trigger(once=True).start().awaitTermination()
    >>> found = uc.checkpoint(f"{folder}/a")
    >>> made = found.delete(where=uc.col("value") == 1, to=f"{folder}/b")
    >>> made.deleted, made.retracted
    ({'step 1, a grouping by (value: int64)': 1}, 1)
    """

    seed: Seed
    deleted: Mapping[str, int]
    """The numbers of rows that have left, by the step."""
    retracted: int
    """The number of panes that the query retracts when it starts from the new checkpoint."""
    remains: tuple[str, ...]
    """The places that still have values of these rows, in words."""

    def __str__(self) -> str:
        lines = [f"{step}: {count:,} row{'' if count == 1 else 's'} deleted" for step, count in self.deleted.items()]
        panes = f"{self.retracted:,} pane{'' if self.retracted == 1 else 's'} to be retracted at the start"
        return "\n".join([*lines, panes, "still there:", *(f"- {text}" for text in self.remains)])

    def __repr__(self) -> str:
        return str(self)


def user_columns(store: str, table: pa.Table, made_by: Mapping[str, Any]) -> dict[str, pa.ChunkedArray]:
    """The columns of the rows of a store that a user knows, under the user's names: those of the key and of the row."""
    keys, values = _names(store, made_by)
    out: dict[str, pa.ChunkedArray] = {}
    for name in table.column_names:
        kind, _, place = name.partition(".")
        if kind in ("key", "value") and place.isdigit():
            known = keys if kind == "key" else values
            out[known[int(place)] if int(place) < len(known) else f"{kind} {int(place) + 1}"] = table[name]
        elif name.startswith(ROW):
            out[name.removeprefix(ROW)] = table[name]
    return out


def _names(store: str, made_by: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The names of the columns of a key, and of the other columns of a row of a join; keys have the left names."""
    if (options := _options_of_join(str(made_by.get("step", "")))) is None:
        return [name for name, _ in made_by.get("by", ())], []
    side = int(store.startswith("right"))
    which = ("left", "right")[side]
    pairs = ast.literal_eval(options["on" if "on" in options else "by"])
    time, weight = (ast.literal_eval(options[f"{which}_{what}"]) for what in ("time", "diff"))
    windows = ["window"] if options.get("within") == "None" and "keep" not in options else []
    own = {*(pair[side] for pair in pairs), *windows, weight, *(["event_time"] if time == "event_time" else [])}
    panes = {("pane", str(kind)) for kind in (PANE, FORMER_PANE)}
    values = [name for name, kind in made_by["columns"][side] if name not in own and (name, kind) not in panes]
    return [*(left for left, _ in pairs), *windows], values


def _options_of_join(step: str) -> dict[str, str] | None:
    """The options in the text of a step, as texts, if it is a join."""
    if not step.startswith(("Join(", "KeptJoin(", "JoinAsof(", "Lookup(")):
        return None
    call = ast.parse(step, mode="eval").body
    assert isinstance(call, ast.Call)
    return {str(option.arg): ast.unparse(option.value) for option in call.keywords}


def deleted_seed(former: Seed, where: Condition, folder: str, work: SeedWork) -> Deletion:
    """Write the seed without the rows for which an expression of their columns is true."""
    steps, deleted, remains, known = list[SeedStep](), dict[str, int](), list[str](), set[str]()
    former_steps = sorted(former.steps, key=lambda one: number_of(one.made_by))
    columns = [_columns(former.folder, step) for step in former_steps]
    conditions = _conditions(where, former_steps)
    has = [_stores_with(one, some) for one, some in zip(conditions, columns, strict=True)]
    for condition, some, stores in zip(conditions, columns, has, strict=True):
        known |= {column for one in some.values() for column in one.names}
        for store in stores:
            assert condition is not None
            _check_condition(condition, some[store])
    _require_clear(where, former_steps, columns, has)
    alone = [_loses_alone(former_steps, place, has, conditions) for place in range(len(former_steps))]
    for step, condition, some, stores, retracts in zip(former_steps, conditions, columns, has, alone, strict=True):
        name, others = _name(step), some.keys() - stores
        bare = others - {OF_ALL_SHARDS}
        files = work.files(_Delete(former.folder, folder, condition, step.made_by, frozenset(others)), step.files)
        shown = list[SeedFile]()
        if condition is not None and retracts and "windows" not in bare:
            shown = _retracted(former.folder, step, condition, folder, work)
        steps.append(replace(step, files=tuple(files), corrections=tuple(shown)))
        if stores:
            deleted[name] = sum(file.rows for file in step.files) - sum(file.rows for file in files)
        remains += _of_step(name, step, bool(bare))
    if not deleted:
        raise InvalidArgument(
            f"no step keeps the columns that where={where!r} reads, so no row can be found by them: the state has "
            f"{', '.join(map(repr, sorted(known))) or 'none'}; delete the rows in the source, then uc.evolve() or "
            "flow.seed() with that as history= computes the results without them"
        )
    seed = write_seed(
        Seed(
            folder=folder,
            steps=tuple(steps),
            maker=SeedMaker(owner=uuid4().hex, batch=0),
            positions=former.positions,
            corrects=True,
            base=former.maker,
            shards=former.shards,
        )
    )
    return Deletion(seed, deleted, sum(file.rows for step in steps for file in step.corrections), tuple(remains))


def _conditions(where: Condition, steps: Sequence[SeedStep]) -> list[Expr | None]:
    """The condition of each step; None for one that keeps all its rows."""
    if isinstance(where, Expr):
        return [where] * len(steps)
    numbers = [number_of(step.made_by) for step in steps]
    if unknown := sorted(where.keys() - set(numbers)):
        raise InvalidArgument(f"where= names step {unknown[0]}, and the checkpoint has state of the steps {numbers}")
    return [where.get(number) for number in numbers]


def _stores_with(where: Expr | None, columns: Mapping[str, pa.Schema]) -> list[str]:
    """The stores of a step that have the columns of its condition."""
    return [store for store, one in columns.items() if where is not None and set(where.columns) <= set(one.names)]


def _require_clear(
    where: Condition,
    steps: Sequence[SeedStep],
    columns: Sequence[Mapping[str, pa.Schema]],
    has: Sequence[Sequence[str]],
) -> None:
    """Raise if a condition of one step has other columns than it, or one of all finds rows of several feeds."""
    if isinstance(where, Expr):
        feeds = [step for step, stores in zip(steps, has, strict=True) if stores and kind_of(step.made_by) == "Upserts"]
        if len(feeds) > 1:
            first, second = (number_of(step.made_by) for step in feeds[:2])
            raise InvalidArgument(
                f"{_name(feeds[0])} and {_name(feeds[1])} both have the columns of where={where!r}, which may be "
                "others in each: give each step its own condition, such as "
                f"where={{{first}: uc.col('customer') == 7, {second}: uc.col('id') == 7}}"
            )
        return
    for step, some, stores in zip(steps, columns, has, strict=True):
        number = number_of(step.made_by)
        if number in where and not stores:
            names = sorted({name for one in some.values() for name in one.names})
            raise InvalidArgument(
                f"{_name(step)} does not keep the columns that where={{{number}: {where[number]!r}}} reads: it has "
                f"{', '.join(map(repr, names)) or 'no rows'}"
            )


def _name(step: SeedStep) -> str:
    return f"step {number_of(step.made_by)}, {words_of(step.made_by)}"


def _loses_alone(
    steps: Sequence[SeedStep], place: int, has: Sequence[Sequence[str]], conditions: Sequence[Expr | None]
) -> bool:
    """True if what a step has shown of deleted rows is to be retracted, since no later step loses these rows itself.

    Raises where a later step does, and it is not clear that it loses the same rows.
    """
    step, where = steps[place], conditions[place]
    later = [there for there in range(place + 1, len(steps)) if has[there]]
    if where is None or not has[place] or not _retracting(step) or not later:
        return True
    after = steps[later[0]]
    linear = all("inputs" not in one.made_by and len(one.made_by["steps"]) == 1 for one in steps)
    same = later[0] == place + 1 and repr(conditions[later[0]]) == repr(where)
    if same and linear and are_left(where.columns, after.made_by["steps"][0]):
        return False
    raise InvalidArgument(
        f"{_name(step)} and {_name(after)} both have the columns of where={where!r}, and the rows of one reach the "
        "other through steps in which these may become others, so they could be taken out twice: name columns that "
        "only one of them has"
    )


def _of_step(name: str, step: SeedStep, bare: bool) -> list[str]:
    """The values of deleted rows that a step still has, or has shown."""
    told = []
    if OF_ALL_SHARDS in step.rows:
        told.append(f"{name}: its shared state, which has what on_broadcast() has put there")
    grouping = kind_of(step.made_by) == "grouping"
    if bare and kind_of(step.made_by) == "Distinct":
        told.append(f"{name}: it keeps hashes of its ids, which do not tell the rows, until they expire")
    elif bare and kind_of(step.made_by) != "Upserts":  # it keeps hashes of keys and numbers beside its rows
        told.append(
            f"{name}: values inside contents of other keys, less those of panes that the steps before it retract"
        )
    if kind_of(step.made_by) == "Rolled":
        told.append(
            f"{name}: rows that it has given are not retracted, and results of other rows that saw them stay as they "
            "are until another row corrects them"
        )
    elif not grouping:
        told.append(f"{name}: rows that it has given are not retracted, since it does not keep them")
    elif not _retracting(step):
        told.append(f"{name}: panes that it has shown are not retracted, since its mode is {step.made_by['mode']}")
    return told


def _retracting(step: SeedStep) -> bool:
    return step.made_by.get("mode") == "'retracting'"


def _columns(folder: str, step: SeedStep) -> dict[str, pa.Schema]:
    """The columns that a user knows of each store that has rows."""
    schemas = {}
    for file in step.files:
        if file.store not in schemas:
            columns = user_columns(file.store, stored_rows(folder, file).living()[1], step.made_by)
            schemas[file.store] = pa.schema([(name, column.type) for name, column in columns.items()])
    return schemas


def _check_condition(where: Expr, columns: pa.Schema) -> None:
    """Raise unless an expression is a condition on these columns."""
    if not pa.types.is_boolean(kind := where.type(columns)):
        raise InvalidArgument(f"where= takes a condition such as uc.col('user') == 'ada', but {where!r} is {kind}")


def _chosen(where: Expr, store: str, table: pa.Table, made_by: Mapping[str, Any]) -> np.ndarray:
    """The rows for which the expression is true."""
    told = where.evaluate(pa.table(user_columns(store, table, made_by)))
    chosen: np.ndarray = np.asarray(pc.fill_null(flat(told), False))
    return chosen


@dataclass(frozen=True)
class _Delete:
    """Takes a file of stored rows into another seed without the rows that are deleted."""

    source: str
    target: str
    where: Expr | None
    made_by: Mapping[str, Any]
    bare: frozenset[str]
    """The stores without the columns of `where`."""

    def __call__(self, file: SeedFile) -> SeedFile | None:
        _, table, wake = stored_rows(self.source, file).living()
        if file.store not in self.bare and self.where is not None:
            kept = np.flatnonzero(~_chosen(self.where, file.store, table, self.made_by))
            table, wake = table.take(pa.array(kept)), {clock: times[kept] for clock, times in wake.items()}
        if not table.num_rows:
            return None
        chunk = Chunk.of(np.zeros(table.num_rows, np.uint64), table, wake)
        return write_bytes(self.target, file.store, file.piece, table.num_rows, pack(chunk))


@dataclass(frozen=True)
class _DeletedPanes(ShownPanes):
    """Reads the panes that are shown of windows which are deleted, to be retracted."""

    where: Expr
    made_by: Mapping[str, Any]

    def __call__(self, one: ShownFile) -> pa.Table:
        _, table, _ = stored_rows(one.folder, one.file).living()
        gone = table.filter(pa.array(_chosen(self.where, one.file.store, table, self.made_by)))
        return shown_panes(gone, self.keys[one.diff], self.schema, one.diff)


def _retracted(folder: str, step: SeedStep, where: Expr, target: str, work: SeedWork) -> list[SeedFile]:
    """Write the retractions of all panes of a step that are shown of windows which are deleted."""
    files = [file for file in step.files if file.store == "windows"]
    if not files or not _retracting(step):
        return []
    _, table, _ = stored_rows(folder, files[0]).living()
    keys = tuple(name for name, _ in step.made_by["by"])
    schema = _output_schema(table.schema, keys)
    panes = _DeletedPanes({-1: keys, 1: keys}, schema, where, step.made_by)
    return work.net(panes, [ShownFile(folder, file, -1) for file in files], target)


def _output_schema(stored: pa.Schema, keys: Sequence[str]) -> pa.Schema:
    """The columns of the output of a grouping, by those of its stored windows."""
    records = stored.field(OUTSTANDING).type.value_type
    results = [one.with_name(one.name.removeprefix(VALUE)) for one in records if one.name.startswith(VALUE)]
    by = [stored.field(f"key.{place}").with_name(name) for place, name in enumerate(keys)]
    after = [("event_time", UTC_MICROS), ("diff", pa.int64()), ("pane", PANE)]
    return pa.schema([*by, pa.field("window", WINDOW), *results, *(pa.field(*one) for one in after)])


__all__ = ["OUTSIDE", "Deletion", "deleted_seed", "user_columns"]
