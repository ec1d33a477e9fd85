"""The grouping step: rows by key in windows, whose panes a trigger shows."""
