"""The numbers of running queries, for Prometheus or OpenTelemetry.

`docs/how-to/metrics.md` teaches it.
"""

from .meter_numbers import opentelemetry
from .prometheus_numbers import prometheus
from .receivers import Exporter

__all__ = ["Exporter", "opentelemetry", "prometheus"]


def __dir__() -> list[str]:
    return __all__
