"""Live tables: the current result of a changelog in a database or in files, right after every batch.

A batch is netted to one change for each key (`net_changes.py`). A target takes the changes and the number of the
batch in one transaction, so that a repeated batch changes nothing and a reader never sees half a batch.
"""

from .changes import Changes
from .keeper import Keeper, new_table, write_once, write_result
from .layout import CHANGE, Layout, table_flow
from .net_changes import changes_of
from .target import Target, Writer
from .targets import target_of

__all__ = [
    "CHANGE",
    "Changes",
    "Keeper",
    "Layout",
    "Target",
    "Writer",
    "changes_of",
    "new_table",
    "table_flow",
    "target_of",
    "write_once",
    "write_result",
]
