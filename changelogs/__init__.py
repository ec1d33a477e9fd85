"""Changelogs of other systems, read as rows with weights or written from them."""

from __future__ import annotations

from .base import Changelog
from .debezium import Debezium
from .kafka import KafkaUpsert
from .postgres import Postgres
from .worded import DeltaFeed, Flink, Ops, SparkUpdate

__all__ = ["Changelog", "Debezium", "DeltaFeed", "Flink", "KafkaUpsert", "Ops", "Postgres", "SparkUpdate"]
