"""Programs that tests start in processes of their own."""

from pathlib import Path


def program(name: str) -> str:
    """The path of one of them."""
    return str(Path(__file__).with_name(f"{name}.py"))
