"""The join of each row with the rows of a table that are valid when it comes."""
