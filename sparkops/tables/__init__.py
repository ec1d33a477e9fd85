"""Live tables of streaming queries, and tables of bounded flows."""
