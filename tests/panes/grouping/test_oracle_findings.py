"""Cases in which Beam's trigger driver once told something else than the operator, with what it tells."""

from __future__ import annotations

import uncombine as uc

MINUTE = 60_000_000


def steps_with_panes(trigger: uc.Trigger, rows: int) -> list[int]:
    """The places of the rows that bring a pane of a window that passed before the first of them."""
    script = [uc.Watermark(2 * MINUTE), *(uc.Elements([{"ts": 0, "x": i}]) for i in range(rows))]
    panes = (
        uc.flow(script)
        .window(uc.Fixed("1 minute"), trigger, allowed_lateness="1 hour", closing="never")
        .combine(n=uc.Count())
        .run()
    )
    return panes["step"].to_pylist()


def test_a_sequence_that_starts_again_on_a_passed_window_waits_for_the_next_row() -> None:
    sequence = uc.Repeatedly(uc.SequenceOf(uc.AfterWatermark(), uc.AfterCount(2)))
    assert steps_with_panes(sequence, 7) == [1, 3, 4, 6, 7]


def test_so_does_one_within_a_sequence() -> None:
    inner = uc.SequenceOf(uc.AfterWatermark(), uc.AfterCount(2))
    assert steps_with_panes(uc.Repeatedly(uc.SequenceOf(inner)), 7) == [1, 3, 4, 6, 7]
