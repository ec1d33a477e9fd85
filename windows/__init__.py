"""WHERE in event time: how rows are assigned to windows and windows merge."""
