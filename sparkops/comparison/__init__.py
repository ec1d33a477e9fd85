"""The net difference of two sides of which Spark has at least one."""
