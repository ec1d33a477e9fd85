"""The join of each row with the row of another input that is nearest to it in time."""
