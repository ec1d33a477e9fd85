"""The ways in which a flow runs on Spark: natively, to final panes, as a replay, as a stream."""

from .route import route, route_with_left_out

__all__ = ["route", "route_with_left_out"]
