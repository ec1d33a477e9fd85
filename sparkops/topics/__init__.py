"""Topics of Kafka as an input of tasks on Spark."""
