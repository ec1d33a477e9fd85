"""A shard of a grouping: the loop of time, the parcels that come to it, and final panes."""
