"""The trigger of a percentage of files, which ends a whole job and fires no window.

Guarded by tests/local/test_early_end.py and tests/triggers/test_words.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from .language import Trigger, require_percent


@dataclass(frozen=True, repr=False)
class FilesPercentile(Trigger):
    """Fires once, when this percentage of the files of a job has been read: for `flow.run(until=)`, and for no window.

    Parameters
    ----------
    percent
        The percentage, from 1 to 100.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.FilesPercentile(90)
    FilesPercentile(90)
    """

    percent: float

    def __post_init__(self) -> None:
        require_percent(self.percent, "FilesPercentile")

    def words(self) -> str:
        return f"once, when {self.percent:.15g} % of the files have been read"
