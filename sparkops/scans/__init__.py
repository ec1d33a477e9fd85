"""DataFrames that are nothing but scans of Parquet files, which the tasks that combine the rows read themselves."""
