"""A shard: the loop that plays the bundles of its keys through an operator, in processing time."""
