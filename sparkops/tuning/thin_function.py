"""A function as Spark's workers read it: on a worker without the library its call says so, with the remedy.

By its name a function of the library could not even be read there, and the error would have no remedy. So the class of
this module travels by value, needs nothing, and has the function as bytes.

Guarded by tests/sparkops/tuning/test_thin_function.py.
"""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any

from ..spark_private import pickled, travels_by_value

if TYPE_CHECKING:
    from collections.abc import Callable


def load(payload: bytes) -> Any:
    """A value that was pickled with the library; raises with the remedy on a worker that does not have the library."""
    try:
        return pickle.loads(payload)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "uncombine":
            raise ModuleNotFoundError(
                f"a worker of Spark has no module {error.name!r}, in which a function of the flow is: send it with "
                f"spark.addPyFile('{error.name}.py'), start the program in its folder, or set PYTHONPATH before Spark "
                "starts",
                name=error.name,
            ) from None
        raise ModuleNotFoundError(
            "a worker of Spark has no library 'uncombine': install it where each worker runs (on Databricks as a "
            "library of the cluster), or send its wheel, copied to a name that ends in .zip, with "
            "spark.addPyFile('uncombine.zip')",
            name=error.name,
        ) from None


class ThinFunction:
    """A function that is read when it is first called.

    >>> import pickle
    >>> pickle.loads(pickled(thin_function(len)))("abc")
    3
    """

    # A function of the library that a method named would be imported with the class, so it is a value here.
    def __init__(self, whole: Callable[..., Any], pickled: Callable[[Any], bytes]) -> None:
        self.whole: Callable[..., Any] | None = whole
        self.pickled = pickled

    def __getstate__(self) -> dict[str, bytes]:
        return {"payload": self.pickled(self.whole)}

    def __setstate__(self, state: dict[str, bytes]) -> None:
        self.payload, self.whole = state["payload"], None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self.whole is None:
            self.whole = load(self.payload)
        return self.whole(*arguments, **named)


def thin_function(whole: Callable[..., Any]) -> ThinFunction:
    """The function that Spark gets in the place of one of the library."""
    return ThinFunction(whole, pickled)


travels_by_value(sys.modules[__name__])

__all__ = ["ThinFunction", "load", "thin_function"]
