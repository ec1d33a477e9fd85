"""State as a log of chunks: how it is indexed, written, cached, and listed in a manifest."""
