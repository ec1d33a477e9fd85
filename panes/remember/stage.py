"""The stage of `remember`: its options and its operator.

Guarded by tests/sparkops/test_steps.py and tests/panes/remember/test_remember.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..rows.stage import RowStage
from .operator import RememberOperator
from .remember import Remember


@dataclass(frozen=True)
class RememberStage(RowStage):
    options: Remember

    def operator(self, *schemas: pa.Schema) -> RememberOperator:
        (schema,) = schemas
        return RememberOperator(self.options, schema)

    def keys(self, schema: pa.Schema) -> Sequence[str]:
        # A row and its retraction are equal.
        return self.options.columns(schema, "map()").read

    def state_options(self, *schemas: pa.Schema) -> Mapping[str, Any]:
        return {**super().state_options(*schemas), "found_by": "the columns of the input"}


__all__ = ["RememberStage"]
