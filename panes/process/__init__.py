"""Computations of the user for each key, with state that they keep, with timers that call them."""
