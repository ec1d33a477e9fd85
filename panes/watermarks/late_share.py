"""The share of rows that a step may leave out as late without a word.

Guarded by tests/panes/watermarks/test_late_share.py.
"""

from __future__ import annotations

MOST = 0.01
"""The largest share of the rows of a step that are left out as late without a warning."""

REMEDY = (
    "give watermark= a lag, or the step an allowed_lateness=, that is as long as rows are out of order; read a history "
    "whose files are not in the order of their times with uc.Files(order='time'), or as a bounded flow; flow.left_out "
    "and result.left_out have such rows"
)


def late_words(late: int, rows: int, stage: int) -> str | None:
    """The warning that so many of the rows of a step are late; None if they are few.

    >>> late_words(1, 100, 1)
    >>> late_words(1_500, 10_000, 1)[:83]
    'stage 1 has left out 1,500 of 10,000 rows as late: give watermark= a lag, or the st'
    """
    if late <= MOST * rows:
        return None
    return f"stage {stage} has left out {late:,} of {rows:,} rows as late: {REMEDY}"


__all__ = ["late_words"]
