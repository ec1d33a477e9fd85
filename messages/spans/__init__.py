"""Values of many messages in one memory, read at once."""
