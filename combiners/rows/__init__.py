"""Arrays computed from columns of rows: groups, key codes, sums by group, sorting, hashing."""
