"""The states that accumulators are made of: vectors of numbers, Z-sets, exact sums, central moments."""
