"""The last row of each key of a feed without old values, so that a new row retracts the old one."""
