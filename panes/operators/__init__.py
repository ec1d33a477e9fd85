"""Operators that keep state between bundles, without an engine."""
