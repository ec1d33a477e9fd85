"""Runs random cases in every way and tells where one parts from the models.

`python tests/support/reference/flows/agree.py 0 20000` prints the seeds that fail, the first few made small.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[2]))

from reference.flows import net, ways
from reference.flows.by_rules import OF_A_REPORT, Outcome, run
from reference.flows.case import NOON, Case, Row
from reference.flows.draw import draw, settled
from reference.flows.ways import Found


def difference(case: Case) -> str | None:
    """The first thing in which a way to run a case, or a model, parts from the others; None if there is none."""
    try:
        return next(_differences(case), None)
    except Exception:
        return "fails: " + traceback.format_exc(limit=-4)


def _differences(case: Case) -> Iterator[str]:
    groupings = [stage.grouping for stage in settled(case).stages]
    want = run(case, groupings)
    flow = ways.local_flow(case)
    local = ways.locally(case, flow)
    whole = _flat(want.rows[-1])
    yield from _rows("local, rules", local.rows, whole)
    yield from _rest("local, rules", local, want, want.counts)
    if case.ends and (found := net.wrong(case, groupings, want)) is not None:
        yield f"net: {found}"
    replay = ways.replayed(case, ways.replay_flow(case))
    yield from _rows("replay, local", replay.rows, local.rows, case.shards == 1)
    yield from _rest("replay, local", replay, want, [])
    if (streaming := ways.stream_flow(case)) is not None:
        stream = ways.streamed(case, streaming)
        before = local.rows[: len(whole) - len(want.rows[-1][-1])] if case.ends else local.rows
        yield from _rows("stream, local", stream.rows, before, case.shards == 1)
        left = [some[:n] for some, n in zip(want.left_out, want.left_out_before_the_end, strict=True)]
        yield from _rest("stream, local", stream, replace(want, left_out=left), want.counts_before_the_end)


def _rest(who: str, got: Found, want: Outcome, counts: list[dict[str, int]]) -> Iterator[str]:
    if got.counts is not None and got.counts != counts:
        yield f"{who}: counts {got.counts}, {counts}"
    if got.output_watermarks is not None:
        known = {place: want.output_watermarks[place] for place in got.output_watermarks}
        if known != got.output_watermarks:
            yield f"{who}: output watermarks {got.output_watermarks}, {known}"
    if got.left_out is not None and want.left_out:
        for stage, (mine, theirs) in enumerate(zip(got.left_out, want.left_out, strict=True), 1):
            one, other = ([f"{why} {_known(row)}" for why, row in some] for some in (mine, theirs))
            if sorted(one) != sorted(other):
                yield f"{who}: left out of stage {stage}\n  {sorted(one)}\n  {sorted(other)}"


def _known(row: Row) -> str:
    """A row that was left out, without what is null in it.

    Those of a later grouping are panes, and the model has no information on them.
    """
    names = {"event_time": "ts", "diff": "d"}
    known = {names.get(name, name): value for name, value in row.items() if value is not None}
    return _text({name: value for name, value in known.items() if name not in (*OF_A_REPORT, "pane")})


def _rows(who: str, got: Sequence[Row], want: Sequence[Row], ordered: bool = True) -> Iterator[str]:
    if not ordered:
        got, want = (sorted(rows, key=_text) for rows in (got, want))
    for at in range(max(len(got), len(want))):
        one, other = (rows[at] if at < len(rows) else None for rows in (got, want))
        if one != other:
            yield f"{who}: row {at}\n  {short(one)}\n  {short(other)}"


def _text(row: Row) -> str:
    return repr(sorted(row.items(), key=lambda item: item[0]))


def _flat(rows: Sequence[Sequence[Row]]) -> list[Row]:
    return [row for some in rows for row in some]


def seconds(time: int | None) -> str:
    """A time as seconds after the noon at which cases begin."""
    return "none" if time is None else f"{(time - NOON) / 1e6:.6f}".rstrip("0").rstrip(".")


def short(row: Row | None) -> str:
    """An output row in a line."""
    if row is None:
        return "nothing"
    pane = row["pane"]
    rest = {name: value for name, value in row.items() if name not in ("window", "pane", "event_time")}
    percent = f" {pane['watermark_percentile']} %" if pane.get("watermark_percentile") is not None else ""
    return (
        f"{rest} [{', '.join(map(seconds, row['window']))}] @{seconds(row['event_time'])} {pane['timing']}"
        f" {pane['index']}/{pane['nonspeculative_index']} {'first ' * pane['is_first']}{'last ' * pane['is_last']}"
        f"{pane['trigger']} watermark {seconds(pane['watermark'])} at {seconds(pane['processing_time'])}{percent}"
    )


def listing(case: Case) -> str:
    """A case to read; times are seconds after noon."""
    lines = [f"seed {case.seed}: {case.strategy!r}, changelog {case.changelog}, ends {case.ends}, clocked"]
    lines[0] += f" {case.clocked}, shards {case.shards}"
    lines += [
        f"{s.window!r} by {s.by} filtered {s.filtered} moved {s.moved} {dict(s.options)} {list(s.combiners)}"
        for s in case.stages
    ]
    for bundle in case.bundles:
        lines.append(f"at {seconds(bundle.at)}")
        for row in bundle.rows:
            shown = {name: value for name, value in row.items() if name != "proc"}
            shown |= {name: seconds(row[name]) for name in ("ts", "mark")}
            lines.append(f"    {shown}")
    return "\n".join(lines)


def shrunk(case: Case) -> Case:
    """The case without bundles and rows that are not needed for the same difference."""
    kind = _kind(difference(case))
    again = True
    while again:
        again = False
        for smaller in _smaller(case):
            if _kind(difference(smaller)) == kind:
                case, again = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    bundles = case.bundles
    for i, bundle in enumerate(bundles):
        if len(bundles) > 1:
            yield replace(case, bundles=bundles[:i] + bundles[i + 1 :])
        for j in range(len(bundle.rows) if len(bundle.rows) > 1 else 0):
            fewer = replace(bundle, rows=bundle.rows[:j] + bundle.rows[j + 1 :])
            yield replace(case, bundles=(*bundles[:i], fewer, *bundles[i + 1 :]))


def _kind(found: str | None) -> str | None:
    """The kind of a difference, so that a smaller case shows the same one."""
    return None if found is None else ":".join(found.split(":")[:2]).rstrip(" 0123456789")[:60].split("[")[0]


def main(first: int, last: int, most: int = 3, signals: bool = False) -> None:
    bad: list[int] = []
    begun = time.process_time()
    for seed in range(first, last):
        case: Any = draw(seed, signals)
        if difference(case) is None:
            continue
        bad.append(seed)
        if len(bad) <= most:
            case = shrunk(case)
            print(f"--- {listing(case)}\n{difference(case)}", flush=True)
    spent = (time.process_time() - begun) / max(last - first, 1)
    print(f"{len(bad)} of {last - first} differ: {bad[:60]}; {spent:.3f} CPU s a case")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
