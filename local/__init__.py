"""Flows in this process, without Spark."""
