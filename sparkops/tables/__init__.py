"""Live tables of streaming queries, tables of bounded flows."""
