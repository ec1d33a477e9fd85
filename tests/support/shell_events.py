"""Events as a user of the command has them: each has the time at which it was made, and that at which it was seen."""

from __future__ import annotations

import pyarrow as pa

EVENTS = pa.table(
    {
        "ts": ["2024-05-01T12:00:10", "2024-05-01T12:03:00", "2024-05-01T12:00:40", "2024-05-01T12:05:00"],
        "seen": ["2024-05-01T12:00:11", "2024-05-01T12:03:01", "2024-05-01T12:04:00", "2024-05-01T12:05:01"],
        "user": ["ada", "ada", "ada", "ada"],
        "score": [3, 4, 5, 1],
    }
)

REPLAY = ["--by", "user", "--window", "fixed 1 minute", "--combine", "total=sum:score", "--lateness", "1 hour"]
"""The arguments after the file of a replay of the events."""
