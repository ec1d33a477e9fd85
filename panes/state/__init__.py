"""The state of operators as a log of chunks that a manifest names."""
