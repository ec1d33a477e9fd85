"""Files as Arrow tables. This room knows neither Spark nor panes."""
