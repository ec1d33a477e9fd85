"""`Retractable`: the option of a combiner between a state that can retract and the smallest state."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

from .algebra import Capability
from .combiner import Combiner


@dataclass(frozen=True, repr=False)
class Retractable(Combiner):
    """A combiner with a field `retractable`: with True its state can retract rows, with False it is MONOID."""

    _with_retraction = Capability.GROUP
    """The capability with `retractable=True`."""

    @property
    @abstractmethod
    def retractable(self) -> bool:
        """True if rows can be retracted."""

    @property
    def capability(self) -> Capability:
        return self._with_retraction if self.retractable else Capability.MONOID

    def append_only(self) -> Combiner:
        return replace(self, retractable=False)  # type: ignore[call-arg]
