"""Topics of Kafka as Arrow tables."""
