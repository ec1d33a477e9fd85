"""The watermarks that the sources of a run in this process had.

Guarded by tests/local/test_local_result.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class SourceWatermarks:
    """The watermark of each source at an entry of a script, by the name of the source, in microseconds.

    It is that of the source: `with_time` has not taken its part of it. A source that has not reported is not there.
    """

    before: Mapping[str | None, int]
    """The watermarks by which the rows of the entry are late."""
    after: Mapping[str | None, int]

    def of(self, names: Collection[str | None]) -> SourceWatermarks:
        """The watermarks of the sources with these names."""
        before, after = ({n: t for n, t in one.items() if n in names} for one in (self.before, self.after))
        return SourceWatermarks(before, after)


__all__ = ["SourceWatermarks"]
