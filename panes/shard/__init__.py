"""A shard of a grouping: the loop of processing time, the parcels that it receives, and final panes."""
