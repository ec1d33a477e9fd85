"""The meaning of a flow as stored values, by which a changed flow is told from the one that wrote a checkpoint."""
