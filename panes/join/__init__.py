"""The join operator: two changelogs by key and time."""
