"""Parts that the operators over single rows share: their options, the rows they take and give, sets of equal rows."""
