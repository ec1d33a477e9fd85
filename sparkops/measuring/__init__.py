"""The metrics of queries, made of the reports of Spark."""
