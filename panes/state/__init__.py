"""State as a log of chunks: the index, the log, the caches and the manifest."""
