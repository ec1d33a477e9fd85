"""Names: of the observed metrics of flows, distinct in every query and the same in every run; of the query of a task.

Guarded by tests/sparkops/test_several_flows.py and tests/sparkops/test_bad_rows.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count, groupby

UNNAMED = "flow"
"""The name of a flow without a name."""

FILES = "files"
"""The part of a flow's metrics that counts skipped files."""

_METRIC = re.compile(r"uncombine (?P<name>[^#]+?)(?: #(?P<number>\d+))? (?P<part>\d+|files\d*)")

_numbers: dict[str, count[int]] = {}


@dataclass(frozen=True, order=True)
class Label:
    """A DataFrame of a flow: the name of the flow, and the number of the DataFrame among those of this name.

    Spark refuses two metrics of one name in a query, and one flow may be in a query twice, so each DataFrame of this
    process has a number. The label of the first shows the name only.

    >>> from uncombine.sparkops.naming import Label
    >>> Label("clicks", 1).metric("1"), Label("clicks", 2).metric("files")
    ('uncombine clicks 1', 'uncombine clicks #2 files')
    """

    name: str
    number: int

    def metric(self, part: str) -> str:
        """The name of the metric of a stage, counted from 1, or of another part."""
        number = "" if self.number == 1 else f" #{self.number}"
        return f"uncombine {self.name}{number} {part}"


def new_label(name: str | None) -> Label:
    """The label of the next DataFrame of a flow of this name."""
    name = UNNAMED if name is None else name
    return Label(name, next(_numbers.setdefault(name, count(1))))


def parsed(metric: str) -> tuple[Label, str] | None:
    """The label and the part in the name of a metric; None if the metric is not of a flow.

    >>> from uncombine.sparkops.naming import parsed
    >>> parsed("uncombine clicks #2 1")
    (Label(name='clicks', number=2), '1')
    """
    match = _METRIC.fullmatch(metric)
    if match is None:
        return None
    return Label(match["name"], int(match["number"] or 1)), match["part"]


def query_of_task() -> str:
    """The query and the batch for which this task runs, as the end of a sentence; empty in a batch and on a driver.

    Spark describes the jobs of a stream by its name, if it has one, its ids, and the number of the batch.

    >>> from uncombine.sparkops.naming import query_of_task
    >>> query_of_task()
    ''
    """
    from pyspark import TaskContext

    task = TaskContext.get()
    text = None if task is None else task.getLocalProperty("spark.job.description")
    parts = (text or "").replace("<br/>", "\n").split("\n")
    told = dict(part.split(" = ", 1) for part in parts if " = " in part)
    if not {"id", "batch"} <= told.keys():
        return ""
    name = f"id {told['id']}" if not parts[0] or parts[0].startswith("id = ") else repr(parts[0])
    return f" (query {name}, batch {told['batch']})"


def shown_names(labels: Iterable[Label]) -> dict[Label, str]:
    """The names by which a query shows its flows; flows of the same name are numbered from 1, oldest first.

    >>> from uncombine.sparkops.naming import Label, shown_names
    >>> list(shown_names([Label("b", 7), Label("a", 3), Label("b", 9)]).values())
    ['a', 'b #1', 'b #2']
    """
    out: dict[Label, str] = {}
    for name, group in groupby(sorted(set(labels)), lambda label: label.name):
        same = list(group)
        out |= {label: name if len(same) == 1 else f"{name} #{i}" for i, label in enumerate(same, 1)}
    return out
