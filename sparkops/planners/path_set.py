"""A set of paths in few bytes: their hashes of 64 bits, as a text.

Among a million paths, one that is not in the set is taken for one in it with a chance of one in 2 ** 44.

Guarded by tests/sparkops/planners/test_path_set.py.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.hashing import hash_arrays
from ...errors import StateMismatch


@dataclass(frozen=True, eq=False)
class PathSet:
    """The hashes of paths, sorted, each once.

    >>> paths = PathSet(hashes_of(["/in/a.csv", "/in/b.csv"]))
    >>> paths.has(hashes_of(["/in/b.csv", "/in/c.csv"])).tolist()
    [True, False]
    >>> PathSet.of_text(paths.text).hashes.tolist() == paths.hashes.tolist()
    True
    """

    hashes: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "hashes", np.unique(self.hashes))

    @classmethod
    def of_text(cls, text: str) -> PathSet:
        """The set that `text` has written."""
        try:
            planes = np.frombuffer(zlib.decompress(b64decode(text, validate=True)), np.uint8).reshape(8, -1)
        except (ValueError, TypeError, zlib.error):
            raise StateMismatch(
                "an offset of a stream of files has no list of the files that are read, as this library writes it: it "
                "is damaged, so restore the checkpoint from a copy"
            ) from None
        return cls(np.cumsum(np.ascontiguousarray(planes.T).view("<u8").reshape(-1).astype(np.uint64), dtype=np.uint64))

    @property
    def text(self) -> str:
        """The set as a text of about 9 characters a path."""
        steps = np.diff(self.hashes, prepend=np.uint64(0)).astype("<u8")
        # The upper bytes of the distances between sorted hashes are zeros, which leave no trace beside each other.
        planes = np.ascontiguousarray(steps.view(np.uint8).reshape(-1, 8).T)
        return b64encode(zlib.compress(planes.tobytes())).decode()

    def has(self, hashes: np.ndarray) -> np.ndarray:
        """True for each hash that is in the set."""
        return np.isin(hashes, self.hashes, kind="sort")  # the other kind fails in numpy 2.0 for 64 bits without a sign

    def both(self, other: PathSet) -> PathSet:
        """The paths of both sets together."""
        return PathSet(np.concatenate([self.hashes, other.hashes]))

    def only(self, chosen: np.ndarray) -> PathSet:
        """The paths for which `chosen` is true, in the order of `hashes`."""
        return PathSet(self.hashes[chosen])

    def __len__(self) -> int:
        return len(self.hashes)


EMPTY = PathSet(np.empty(0, np.uint64))


def hashes_of(paths: Sequence[str]) -> np.ndarray:
    """The hash of each path, which never changes."""
    return hash_arrays([pa.array(paths, pa.string())])


__all__ = ["EMPTY", "PathSet", "hashes_of"]
