"""Triggers: the rules for when panes are emitted, evaluated by column."""

from .compiling import compile_trigger as compile_trigger
from .composites import AllOf, Clearing, FirstOf, RepeatCount, Repeatedly, SequenceOf
from .context import ChildTrigger, TriggerContext
from .files_percentile import FilesPercentile
from .input_columns import check_inputs as check_inputs
from .input_columns import check_signals as check_signals
from .input_columns import truth as truth
from .language import RepeatUntil, Trigger
from .language import as_trigger as as_trigger
from .language import walk as walk
from .leaves import (
    AfterBytes,
    AfterCount,
    AfterDelay,
    AfterWatermark,
    Always,
    AtPeriod,
    Never,
    OnPunctuation,
    OnResult,
    OnSignal,
    WatermarkPercentile,
)
from .properties import can_fire_on_global as can_fire_on_global
from .properties import check_children as check_children
from .properties import check_trigger as check_trigger
from .properties import fires_ever as fires_ever
from .properties import fires_once as fires_once
from .properties import fires_only_at_the_end as fires_only_at_the_end
from .properties import may_finish as may_finish
from .properties import percentiles as percentiles
from .properties import signals_of as signals_of
from .properties import uses_processing_time as uses_processing_time
from .user import UserTrigger
from .words import TRIGGER_WORDS as TRIGGER_WORDS

__all__ = [
    "AfterBytes",
    "AfterCount",
    "AfterDelay",
    "AfterWatermark",
    "AllOf",
    "Always",
    "AtPeriod",
    "ChildTrigger",
    "Clearing",
    "FilesPercentile",
    "FirstOf",
    "Never",
    "OnPunctuation",
    "OnResult",
    "OnSignal",
    "RepeatCount",
    "RepeatUntil",
    "Repeatedly",
    "SequenceOf",
    "Trigger",
    "TriggerContext",
    "UserTrigger",
    "WatermarkPercentile",
]


def __dir__() -> list[str]:
    return __all__
