"""Tables of a lakehouse as an input of tasks on Spark."""
