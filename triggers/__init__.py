"""WHEN in processing time: the trigger language and its columnar evaluation."""

from .check import can_fire_on_global, check_trigger, may_finish, percentiles, uses_processing_time
from .compiling import compile_trigger, truth
from .composites import AllOf, FirstOf, Repeatedly, RepeatCount, RepeatUntil, SequenceOf
from .language import Trigger, walk
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
    WatermarkPercentile,
)
from .user import TriggerContext, UserTrigger

__all__ = [
    "AfterBytes",
    "AfterCount",
    "AfterDelay",
    "AfterWatermark",
    "AllOf",
    "Always",
    "AtPeriod",
    "FirstOf",
    "Never",
    "OnPunctuation",
    "OnResult",
    "RepeatCount",
    "RepeatUntil",
    "Repeatedly",
    "SequenceOf",
    "Trigger",
    "TriggerContext",
    "UserTrigger",
    "WatermarkPercentile",
]
