"""HOW refinements relate: accumulation modes, pane info, the grouping operator, the local runner."""
