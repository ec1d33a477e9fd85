"""The join step: two changelogs matched by key within a time."""
