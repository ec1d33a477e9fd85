"""Parts that the steps over single rows share: their options, their clocks, sets of equal rows."""
