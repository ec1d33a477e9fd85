"""The law kit of flows: random scripts, and the rows that a flow leaves. `uncombine.testing` is its face."""

try:
    import hypothesis
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "the law kit needs hypothesis: install uncombine[testing]",
        name="hypothesis",
    ) from missing
