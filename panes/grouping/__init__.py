"""The grouping operator: windows, triggers and panes over bundles of rows."""
