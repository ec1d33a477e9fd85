"""Several flows that run as one, in which equal steps are one step."""
