"""Numbers of a batch in words.

Guarded by tests/sparkops/test_progress_log.py.
"""

from __future__ import annotations


def counted_noun(count: int, noun: str, did: str = "", **parts: int) -> str:
    """A count of things, with those of its parts that are not 0.

    >>> from uncombine.sparkops.measuring.number_words import counted_noun
    >>> counted_noun(1, "row", " left out", late=1, bad=0), counted_noun(1200, "row")
    ('1 row left out (1 late)', '1,200 rows')
    """
    some = ", ".join(f"{part:,} {name.replace('_', ' ')}" for name, part in parts.items() if part)
    return f"{count:,} {noun}{'s' * (count != 1)}{did}{f' ({some})' if some else ''}"


def shown_size(count: float) -> str:
    """A number of bytes.

    >>> from uncombine.sparkops.measuring.number_words import shown_size
    >>> shown_size(512), shown_size(5 << 20)
    ('512 B', '5 MiB')
    """
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


__all__ = ["counted_noun", "shown_size"]
