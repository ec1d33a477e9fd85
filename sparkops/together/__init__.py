"""Several flows as one streaming query of Spark."""
