"""The result of a comparison: counts, examples, and the whole difference.

Guarded by tests/test_comparing.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Never

import pyarrow as pa

from ...errors import InvalidArgument, TypeMismatch
from ...panes.showing import TablePreview, shown_rows

KINDS = ("equal", "changed", "only in old", "only in new")
"""The words for a row, by the number of its kind."""

EQUAL, CHANGED, ONLY_OLD, ONLY_NEW = range(len(KINDS))


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The result of `uc.compare`: the verdict, the number of rows of each kind, and examples.

    Printed, it has the examples, with keys and the columns that changed in some row if there are such columns.
    It is neither true nor false, so that `assert uc.compare(a, b)` cannot pass by mistake: write `.same`.

    >>> import uncombine as uc
    >>> old = {"k": ["a", "b", "c"], "n": [1, 2, 3]}
    >>> new = {"k": ["a", "b", "d"], "n": [1, 5, 3]}
    >>> comparison = uc.compare(old, new, keys="k")
    >>> comparison
    old and new differ: 1 row changed, 1 only in old, 1 only in new, 1 equal
    changed columns: n (1)
    difference   k  n_old  n_new
    changed      b      2      5
    only in old  c      3
    only in new  d             3
    >>> comparison.same, comparison.changed, comparison.changed_columns
    (False, 1, {'n': 1})
    """

    equal: int
    """The number of rows that both sides have."""
    changed: int
    """The number of keys whose rows have other values; 0 without `keys=`."""
    only_old: int
    """The number of rows of the old side alone."""
    only_new: int
    """The number of rows of the new side alone."""
    examples: pa.Table
    """Some rows that differ, of each kind as many as there is room for: `difference` says in which way.

    With `keys=` the keys follow, and each other column twice, such as `n_old` and `n_new`. Without, the columns of the
    rows follow, and `diff`: how many more of this row the new side has, negative if it has fewer.
    """
    changed_columns: Mapping[str, int] = field(default_factory=dict)
    """The columns that differ in changed rows, each with the number of these rows."""
    keys: Sequence[str] = ()
    """The columns that identify a row."""
    difference: pa.Table | None = None
    """All rows that differ, if this process has compared them."""
    frame: Any = None
    """All rows that differ, as a DataFrame, if Spark has compared them."""

    @property
    def same(self) -> bool:
        """True if no row differs.

        >>> import uncombine as uc
        >>> uc.compare([{"x": 1}, {"x": 2}], [{"x": 2}, {"x": 1}]).same
        True
        """
        return not (self.changed or self.only_old or self.only_new)

    def to_arrow(self) -> pa.Table:
        """All rows that differ, in the columns of `examples`, as an Arrow table. On Spark they are in `df`.

        >>> import uncombine as uc
        >>> uc.compare({"x": [1, 1, 2]}, {"x": [1, 2]}).to_arrow().to_pylist()
        [{'difference': 'only in old', 'x': 1, 'diff': -1}]
        """
        if self.difference is None:
            raise InvalidArgument(
                "to_arrow() has the rows of a comparison in this process, and Spark has these: use df"
            )
        return self.difference

    @property
    def df(self) -> Any:
        """All rows that differ, in the columns of `examples`, as a DataFrame of Spark, which compares them again.

        >>> import uncombine as uc
        >>> spark = uc.session()
        >>> uc.compare(spark.range(3), spark.range(2)).df.collect()
        [Row(difference='only in old', id=2, diff=-1)]
        """
        if self.frame is None:
            raise InvalidArgument("df is the difference of sides on Spark, and these are here: write to_arrow()")
        return self.frame

    def __bool__(self) -> Never:
        raise TypeMismatch("a comparison is neither true nor false: write .same")

    def __str__(self) -> str:
        return self._shown().text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = self._shown()
        return shown.html() if shown.names else f"<p>{escape(shown.title)}</p>"

    @property
    def verdict(self) -> str:
        """The result in a sentence.

        >>> import uncombine as uc
        >>> uc.compare({"x": [1]}, {"x": [1]}).verdict
        'old and new are the same: 1 row'
        """
        if self.same:
            return f"old and new are the same: {self.equal:,} row{'s' * (self.equal != 1)}"
        counts = {"changed": self.changed, "only in old": self.only_old, "only in new": self.only_new}
        said = [f"{count:,} {words}" for words, count in counts.items() if count]
        number, _, words = said[0].partition(" ")
        said[0] = f"{number} row{'s' * (number != '1')} {words}"
        return f"old and new differ: {', '.join(said)}, {self.equal:,} equal"

    def _shown(self) -> TablePreview:
        title = self.verdict
        if self.changed_columns:
            most = sorted(self.changed_columns.items(), key=lambda column: -column[1])
            title += "\nchanged columns: " + ", ".join(f"{name} ({count:,})" for name, count in most)
        if not self.examples.num_rows:
            return TablePreview(rows=(), numbers=(), title=title)
        examples = self.examples
        if self.changed_columns:  # the others have the same values in rows that changed
            names = examples.column_names
            pairs = [name for name in names[1 + len(self.keys) :] if name.rpartition("_")[0] in self.changed_columns]
            examples = examples.select([*names[: 1 + len(self.keys)], *pairs])
        shown = shown_rows(examples, examples.num_rows)
        return replace(shown, title=title, more="")


__all__ = ["CHANGED", "EQUAL", "KINDS", "ONLY_NEW", "ONLY_OLD", "Comparison"]
