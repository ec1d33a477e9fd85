"""`WholeGroup`: the way of a combiner from the columns of one group to its result, prepared once for a schema."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..compiled import CompiledPlan, Whole
from ..rows.columns import Column, flat
from ..rows.groups import Groups
from ..rows.plain_types import as_plain


class WholeGroup:
    """The kernel of the only combiner of a plan, with everything that does not depend on rows done before.

    >>> import pyarrow as pa, uncombine as uc
    >>> group = WholeGroup(uc.Sum("x").bind(pa.schema({"x": pa.int64()})).plan)
    >>> group.result([pa.array([3, None, 4])])
    <pyarrow.Int64Scalar: 7>
    """

    def __init__(self, plan: CompiledPlan) -> None:
        (one,) = plan.compiled.values()
        self._plan, self._kernel, self._part = plan, one.whole, one.parts[0]
        self._kinds = [plan.schema.field(name).type for name in plan.columns]
        self._decoded = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in self._kinds]
        inputs = self._part.inputs
        self._places: list[int] | None = None
        """The columns that are the inputs of the kernel, if they go to it as they are."""
        if self._part.where is None and all(expr.op == "col" for expr in inputs):
            self._places = [plan.columns.index(expr.args[0]) for expr in inputs]

    def result(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Scalar:
        """The result of the rows: that of the kernel, or of `add` and `extract` if there is none or it declines.

        The columns are those of the plan in its order; if it reads none, any one column, whose rows count.
        """
        result = None if self._kernel is None else self._of_kernel(self._kernel, columns)
        if result is not None:
            return result
        groups, table = self._rows(columns)
        return self._plan.extract(self._plan.add(groups, table))[0][0]

    def _of_kernel(self, kernel: Whole, columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Scalar | None:
        if self._places is None:
            return self._of_expressions(kernel, columns)
        arrays = [self._plain(columns[place], place) for place in self._places]
        for array in arrays:
            if array.null_count:
                if len(arrays) > 1:
                    return self._of_expressions(kernel, columns)
                arrays = [array.drop_null()]
                return kernel(len(arrays[0]), arrays)
        return kernel(len(columns[0]), arrays)

    def _plain(self, array: pa.Array | pa.ChunkedArray, place: int) -> pa.Array:
        """The column as one array of a plain type that is no dictionary."""
        if isinstance(array, pa.ChunkedArray):
            array = flat(array)
        if array.type == self._decoded[place]:
            return array
        return Column(as_plain(array, self._kinds[place])).array

    def _of_expressions(self, kernel: Whole, columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Scalar | None:
        """The result where inputs are computed, rows are filtered, or rows with a null in one of several inputs go."""
        groups, inputs, _ = self._plan.part_rows(*self._rows(columns)).of(self._part)
        return kernel(len(groups), [column.array for column in inputs])

    def _rows(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> tuple[Groups, pa.Table]:
        """The rows as a table of one group."""
        rows, names = len(columns[0]), self._plan.columns
        table = pa.table(dict(zip(names, columns, strict=True)) if names else {"rows": pa.nulls(rows)})
        return Groups.single(rows), table
