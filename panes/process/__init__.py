"""Computations of the user with state and timers for each key."""
