"""The quick part of the suite under the lowest and the newest versions that pyproject.toml allows."""
