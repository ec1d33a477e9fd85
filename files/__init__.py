"""Files as Arrow tables, without Spark."""
