"""Functions whose results are remembered, so that a retraction retracts what was given."""
