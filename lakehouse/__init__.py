"""Tables of a lakehouse as rows with weights, version by version."""
