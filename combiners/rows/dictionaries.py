"""Chunks of a dictionary column as one array.

Guarded by tests/combiners/test_dictionaries.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .plain_types import decoded


def one_dictionary(chunks: Sequence[pa.DictionaryArray]) -> pa.Array:
    """The chunks joined. Chunks that share a dictionary, as those of a file do, cost no look at its values.

    The indices are wider than those of the chunks if all of their values together need it. Lists, structs, maps and
    values of an extension type are decoded, since Arrow has no dictionary of those of several.

    >>> import pyarrow as pa
    >>> a, b = pa.array(["x", "y", "x"]).dictionary_encode(), pa.array(["y", None]).dictionary_encode()
    >>> one_dictionary([a, a, b]).to_pylist()
    ['x', 'y', 'x', 'x', 'y', 'x', 'y', None]
    """
    own = {_place(chunk.dictionary): chunk.dictionary for chunk in chunks}
    kind = chunks[0].type
    if pa.types.is_nested(kind.value_type) or isinstance(kind.value_type, pa.BaseExtensionType):
        return pa.concat_arrays([decoded(chunk) for chunk in chunks])
    if len(own) == 1:
        indices, dictionary = [chunk.indices for chunk in chunks], chunks[0].dictionary
    else:
        coded = pa.concat_arrays(list(own.values())).dictionary_encode()
        most = np.iinfo(kind.index_type.to_pandas_dtype()).max
        index = kind.index_type if len(coded.dictionary) <= most else coded.indices.type
        ends = np.cumsum([len(some) for some in own.values()])
        codes = {
            place: coded.indices.slice(end - len(some), len(some)).cast(index)
            for (place, some), end in zip(own.items(), ends, strict=True)
        }
        indices = [pc.take(codes[_place(chunk.dictionary)], chunk.indices) for chunk in chunks]
        dictionary = coded.dictionary
    return pa.DictionaryArray.from_arrays(pa.concat_arrays(indices), dictionary, ordered=kind.ordered, safe=False)


def _place(values: pa.Array) -> tuple[int, ...]:
    """The place of an array in memory, by which arrays that share it are known."""
    return (values.offset, len(values), *(0 if part is None else part.address for part in values.buffers()))


__all__ = ["one_dictionary"]
