"""Random transcripts on the subset where the rules of Beam and of this library agree.

A case is plain data, so that it can be sent to another Python as JSON: a window and a trigger as nested lists, a mode,
a lateness and a script of `["row", key, time, value]` and `["watermark", time]`; all times are microseconds.
"""

from __future__ import annotations

import random
from typing import Any

SECOND = 1_000_000
END = None
"""As the time of a watermark: the end of time."""

Spec = list[Any]
Case = dict[str, Any]


def case(seed: int) -> Case:
    """The case of this seed."""
    r = random.Random(seed)
    window = _window(r)
    merging = window[0] == "sessions"
    trigger = _root(r, merging, waits=window[0] != "global")
    while _watermarks(trigger) > 1 or _waits_for_sequence(trigger):
        trigger = _root(r, merging, waits=window[0] != "global")
    # Beam keeps rows at the very instant of expiry, so no watermark comes to one.
    half = r.random() < 0.4
    drawn: Case = {
        "window": window,
        "trigger": trigger,
        "mode": r.choice(["accumulating", "discarding"]),
        "lateness": 0 if half else r.choice([1, 10, 40, 10_000]) * SECOND + SECOND // 2,
        "script": [],
    }
    drawn["script"] = _script(r, drawn, SECOND // 2 if half else 0)
    return drawn


def _root(r: random.Random, merging: bool, waits: bool) -> Spec:
    trigger = _trigger(r, 3, merging)
    if not waits and not _counts(trigger):
        trigger = ["first", ["count", r.randint(1, 4)], trigger]
    return ["repeatedly", trigger] if r.random() < 0.6 else trigger


def _window(r: random.Random) -> Spec:
    match r.randrange(6):
        case 0:
            return ["global"]
        case 1 | 2:
            return ["fixed", r.choice([10, 20, 60]) * SECOND, r.choice([0, 0, 3]) * SECOND]
        case 3:
            return ["sliding", 20 * SECOND, r.choice([5, 8, 10, 20]) * SECOND, r.choice([0, 3]) * SECOND]
    return ["sessions", r.choice([5, 10, 20]) * SECOND]


def _trigger(r: random.Random, depth: int, merging: bool, first: bool = True) -> Spec:
    if depth > 0 and r.random() < 0.55:
        return _composite(r, depth - 1, merging, first)
    if not first or r.random() < 0.4:
        return ["count", r.randint(1, 4)]
    early = _trigger(r, depth - 1, merging) if depth > 0 and r.random() < 0.6 else None
    late = _trigger(r, depth - 1, merging) if depth > 0 and r.random() < 0.6 else None
    return ["watermark", early, late]


def _composite(r: random.Random, depth: int, merging: bool, first: bool) -> Spec:
    kind = r.choice(["first", "all", "repeatedly"] if merging else ["first", "all", "repeatedly", "each", "each"])
    if kind == "repeatedly":
        return [kind, _trigger(r, depth, merging, first)]
    count = r.randint(1, 3)
    return [kind, *(_trigger(r, depth, merging, first and (kind != "each" or i == 0)) for i in range(count))]


def _counts(trigger: Spec | None) -> bool:
    if trigger is None:
        return False
    return trigger[0] == "count" or any(_counts(child) for child in trigger[1:] if isinstance(child, list))


def _watermarks(trigger: Spec | None) -> int:
    """The number of times that the trigger waits for the watermark: Beam fires each of them by itself."""
    if trigger is None:
        return 0
    return (trigger[0] == "watermark") + sum(_watermarks(child) for child in trigger[1:] if isinstance(child, list))


def _waits_for_sequence(trigger: Spec | None, within_all: bool = False) -> bool:
    """True if an `AllOf` has a sequence in it: for Beam a finished sequence does not fire."""
    if trigger is None or trigger[0] == "count":
        return False
    if within_all and trigger[0] == "each":
        return True
    within_all = within_all or trigger[0] == "all"
    return any(_waits_for_sequence(child, within_all) for child in trigger[1:] if isinstance(child, list))


def _script(r: random.Random, drawn: Case, odd: int) -> list[Spec]:
    event, mark = 0, 0
    script: list[Spec] = []
    for number in range(r.randint(4, 24)):
        if r.random() < 0.75:
            event = max(0, event + r.choice([0, 0, 1, 2, 5, 10, -5]))
            t = max(0, event + r.choice([0, 0, 1, 3, 7, -2, -10, -30]))
            entry = ["row", r.choice(["a", "a", "b"]), t * SECOND, number]
        else:
            mark = max(mark, r.choice([event, event - 5, event + 10, mark + 5, event + 30]))
            entry = ["watermark", mark * SECOND + odd]
        if within({**drawn, "script": [*script, entry]}):
            script.append(entry)
    if r.random() < 0.5:
        script.append(["watermark", (mark + r.choice([30, 100])) * SECOND + odd])
    if r.random() < 0.3:
        script.append(["watermark", END])
    return script


def within(drawn: Case) -> bool:
    """True if a script uses only rules that both sides share; see the differences in docs/semantics.md."""
    if drawn["window"][0] != "sessions":
        return True
    gap, lateness = drawn["window"][1], drawn["lateness"]
    rewinds = _may_rewind(drawn["trigger"])
    sessions: dict[str, list[tuple[int, int]]] = {}
    mark: float = float("-inf")
    for entry in drawn["script"]:
        if entry[0] == "watermark":
            mark = float("inf") if entry[1] is END else max(mark, entry[1])
            continue
        held = sessions.setdefault(entry[1], [])
        proto = (entry[2], entry[2] + gap)
        met = [s for s in held if s[0] < proto[1] and proto[0] < s[1]]
        if any(end + lateness <= mark for _, end in [*met, proto]):
            return False
        merged = (min(s[0] for s in [*met, proto]), max(s[1] for s in [*met, proto]))
        if rewinds and merged[1] > mark and any(s[1] <= mark for s in met):
            return False
        sessions[entry[1]] = [s for s in held if s not in met] + [merged]
    return True


def _may_rewind(trigger: Spec) -> bool:
    return trigger[0] == "watermark" or any(_may_rewind(child) for child in trigger[1:] if isinstance(child, list))
