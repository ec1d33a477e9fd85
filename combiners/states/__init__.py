"""States that several families of accumulators share: vectors of numbers, Z-sets, exact sums, central moments."""
