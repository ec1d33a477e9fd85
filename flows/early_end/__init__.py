"""The early end of a bounded job: the trigger that ends its reading."""
