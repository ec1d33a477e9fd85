"""The ways in which a flow runs on Spark: natively, to final panes, as a replay, as a stream."""

from .route import route

__all__ = ["route"]
