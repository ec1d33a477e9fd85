"""The same aggregations on Spark."""
