"""An animation of panes: one HTML page with the data of a run and a script that draws them, step by step.

The page needs neither a server nor a library, and in a notebook it stands in a frame of its own.

Guarded by tests/plot/test_animation_page.py.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from ..combiners.column_names import key_names
from ..errors import InvalidArgument, require_column
from ..local.script import Clock, Elements, Entry, Watermark
from ..windows import time_text, timestamp
from .picture import History
from .picture_data import Bounds, Pane
from .style import LONGEST_KEY, MOST_PANELS, TIMING, mark_name, named, text_of

STATES = list(TIMING)

EVERY, NONE = -1, -2
"""The numbers of the keys of what every panel shows, and of what only the panel of all keys shows."""

LISTED = 4
"""The most values of a step that its sentence has."""


@dataclass(frozen=True, repr=False)
class Animation:
    """A page that plays panes; a notebook shows it.

    >>> from uncombine.plot.animation_page import Animation
    >>> Animation(html="<p>panes</p>")._repr_html_().count("srcdoc=")
    1
    """

    html: str
    """The page, as text."""
    height: int = 640
    """The height of its frame in a notebook, in pixels."""

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page into a file, which a browser opens.

        >>> import tempfile, uncombine as uc
        >>> script = [uc.Elements([{"ts": 0, "x": 5}]), uc.Watermark(120_000_000)]
        >>> result = uc.flow(script).window("1 minute").combine(total=uc.Sum("x")).run()
        >>> uc.plot.animation(result, script).save(f"{tempfile.mkdtemp()}/panes.html").name
        'panes.html'
        """
        Path(path).write_text(self.html, encoding="utf-8")
        return Path(path)

    def __repr__(self) -> str:
        return f"Animation of {len(self.html):,} characters: write .save('panes.html')"

    def _repr_html_(self) -> str:
        """The page in a frame, which shares no names with other pages of the notebook."""
        style = f"width:100%;height:{self.height}px;border:0"
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts" style="{style}" '
            'title="Panes, step by step"></iframe>'
        )


def animation(
    result: Any,
    script: Sequence[Entry],
    *,
    time: str | Mapping[str, str] | None = None,
    value: str | None = None,
    datum: str | None = None,
    where: Mapping[str, Any] | None = None,
    between: Sequence[Any] | None = None,
    by: str | Sequence[str] | None = None,
    title: str = "Panes, step by step",
) -> Animation:
    """Make an HTML page that plays the panes of a run, entry by entry of its script.

    The browser draws them from their data. The page has a slider, buttons and keys for the steps, a sentence for each,
    and shows less time around a step, where a picture of all has no room for values. It needs neither a server nor a
    library: save it and open the file, or let a notebook show it.

    Parameters
    ----------
    result
        The result of `flow.run(script)`, whose column `step` says which entry gave a pane.
    script
        The script that gave it.
    time, value, datum, where, between
        As for `panes`.
    by
        The key columns for a panel for each key; all of them if not given. If there are more than 12 keys, the page
        shows all in one panel, and lets the reader choose one.
    title
        The title of the page.

    Examples
    --------
    >>> import uncombine as uc
    >>> script = [uc.Elements([{"ts": 0, "x": 5}], at=60_000_000), uc.Watermark(120_000_000)]
    >>> result = uc.flow(script).window(uc.Fixed("1 minute")).combine(total=uc.Sum("x")).run()
    >>> uc.plot.animation(result, script).html.splitlines()[0]
    '<!doctype html>'
    """
    if not isinstance(script, Sequence) or isinstance(script, str):
        raise InvalidArgument(
            f"animation() plays the script of a run, a list of uc.Elements and the like, but was given {script!r}: a "
            "replay has none, and 'uncombine replay ... --plot panes.html' plays one"
        )
    history = History.of(result, script, time=time, value=value, datum=datum, where=where, between=between)
    return page_of(history, title, by, getattr(result, "column_names", ()))


def page_of(history: History, title: str, by: str | Sequence[str] | None, columns: Sequence[str]) -> Animation:
    """The page of a history."""
    if "step" not in columns:
        raise InvalidArgument("an animation needs the column 'step' of a run in this process: write flow.run(script)")
    names = history.keys if by is None else key_names(by)
    for name in names:
        require_column(name, history.keys, "by=")
    data = data_of(history, names)
    keys = data["keys"]
    options = [("each", "each key")] if 1 < len(keys) <= MOST_PANELS else []
    options += [("-1", f"all {len(keys)} keys" if keys else "all"), *((str(n), key) for n, key in enumerate(keys))]
    parts = {
        "title": html.escape(title),
        "hidden": "" if len(keys) > 1 else " hidden",
        "options": "".join(f'<option value="{name}">{html.escape(words)}</option>' for name, words in options),
        "legend": "".join(f"<li>{sign}{html.escape(words)}</li>" for sign, words in _legend(history)),
        "data": json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"),
        "script": _file("animation.js") + _file("animation_steps.js"),
    }
    page = re.sub(rf"@({'|'.join(parts)})@", lambda match: parts[match[1]], _file("animation.html"))
    return Animation(html=page, height=640 if len(keys) <= 1 else 820)


def _file(name: str) -> str:
    """A file of this folder, also of one in a zip on Spark's workers."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def data_of(history: History, names: Sequence[str]) -> dict[str, Any]:
    """The data that the script of the page draws: columns of plain values, times in milliseconds after `origin`."""
    whole = history.whole()
    origin = whole.bounds[0].replace(microsecond=0)

    def millis(time: datetime | None) -> float | None:
        if time is None:
            return None
        exact = (time - origin) / timedelta(milliseconds=1)
        return int(exact) if exact == int(exact) else round(exact, 3)

    values = history.values_of(names) if names else []
    numbers = {key: number for number, key in enumerate(values)}
    places = [history.keys.index(name) for name in names]
    windows: dict[tuple[tuple[Any, ...], Bounds | None], int] = {}
    for pane in history.panes:
        windows.setdefault((pane.key, pane.bounds), len(windows))
    return {
        "origin": origin.timestamp() * 1000,
        "bounds": [millis(t) for t in whole.bounds],
        "heights": [millis(t) for t in whole.heights],
        "timed": whole.timed,
        "keys": [named(key, names, LONGEST_KEY) for key in values],
        "mixed": len({pane.key for pane in history.panes}) > max(len(values), 1),
        "windows": {
            "start": [millis(bounds[0]) if bounds else None for _, bounds in windows],
            "end": [millis(bounds[1]) if bounds else None for _, bounds in windows],
            "key": [numbers.get(tuple(key[place] for place in places), EVERY) for key, _ in windows],
        },
        "panes": {
            "window": [windows[pane.key, pane.bounds] for pane in history.panes],
            "at": [millis(pane.at) for pane in history.panes],
            "timing": [STATES.index(pane.timing) for pane in history.panes],
            "diff": [pane.diff for pane in history.panes],
            "value": [text_of(pane.value) for pane in history.panes],
            "step": [pane.step for pane in history.panes],
        },
        "rows": {
            "event": [millis(point.event) for point in history.points],
            "at": [millis(point.processing) for point in history.points],
            "label": [text_of(point.label) for point in history.points],
            "state": [2 if point.dropped else int(point.late) for point in history.points],
            "step": [point.step for point in history.points],
            "key": [_number(point.key(names), numbers) for point in history.points],
        },
        "marks": [
            {
                "name": mark_name(name),
                "at": [millis(at) for at, _, _ in marks],
                "to": [millis(min(max(mark, whole.bounds[0]), whole.bounds[1])) for _, mark, _ in marks],
                "step": [step for _, _, step in marks],
            }
            for name, marks in history.marks.items()
        ],
        "steps": {"at": [millis(at) for at in history.clock], "words": _sentences(history)},
    }


def _number(key: tuple[Any, ...] | None, numbers: Mapping[tuple[Any, ...], int]) -> int:
    """The number of the key of a row; a row without the columns of keys is one of every key."""
    return EVERY if not key else numbers.get(key, NONE)


def _sentences(history: History) -> list[str]:
    """A sentence for each entry of the script, and one on the panes that it gave."""
    given: list[list[Pane]] = [[] for _ in history.entries]
    for pane in history.panes:
        given[pane.step].append(pane)
    return [_sentence(entry, panes, history.keys) for entry, panes in zip(history.entries, given, strict=True)]


def _sentence(entry: Entry, panes: Sequence[Pane], keys: Sequence[str]) -> str:
    words = _words(entry)
    retracted = [text_of(pane.value) for pane in panes if pane.diff < 0]
    shown = [_pane_words(pane, keys) for pane in panes if pane.diff > 0]
    parts = [f"{words[0].upper()}{words[1:]}."]
    parts += [f"Retracted: {_listed(retracted)}."] if retracted else []
    return " ".join([*parts, f"Panes: {_listed(shown)}." if shown else "No pane."])


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(texts[:LISTED]) + (f" and {len(texts) - LISTED} more" if len(texts) > LISTED else "")


def _pane_words(pane: Pane, keys: Sequence[str]) -> str:
    where = "all of time" if pane.bounds is None else _between(*pane.bounds)
    of = f"{named(pane.key, keys, LONGEST_KEY)}, {where}" if keys else where
    return f"{pane.timing.lower().replace('_', ' ')} {text_of(pane.value)} of {of}"


def _between(start: datetime, end: datetime) -> str:
    """Both ends of a window; the day is said once if it is that of both."""
    low, high = (_time(time) for time in (start, end))
    return f"{low} - {high.removeprefix(low.partition(' ')[0]).strip()}"


def _words(entry: Entry) -> str:
    match entry:
        case Elements(rows=rows):
            arrive = "1 row arrives" if len(rows) == 1 else f"{len(rows)} rows arrive"
            return "; ".join([arrive, *(_words(report) for report in entry.watermarks)])
        case Watermark(t=t):
            return f"the watermark advances to {_time(t)}" if t is not None else "the input ends"
        case Clock(t=t):
            return f"it is {_time(t)}"


def _time(value: Any) -> str:
    return time_text(timestamp(value)).removesuffix("Z").replace("T", " ")


def _legend(history: History) -> Iterator[tuple[str, str]]:
    """A sign and a name for everything that the pictures show."""
    timings = {pane.timing for pane in history.panes if pane.diff > 0}
    for timing in filter(timings.__contains__, STATES):
        name = timing.lower().replace("_", " ")
        yield _sign(f'<path class="pane {name.replace(" ", "-")}" d="M1 1h20v10h-20z"/>'), f"{name} pane"
    if any(pane.diff < 0 for pane in history.panes):
        yield _sign('<path class="retracted" d="M1 6h20"/>'), "retracted"
    for number, source in enumerate(history.marks):
        dashes = f'stroke-dasharray="{4 + 3 * number} 2"'
        yield _sign(f'<path class="watermark" {dashes} d="M1 6h20"/>'), mark_name(source)
    dot = '<path class="dot" stroke-width="9" d="M11 6h0"/>'
    hole = f'{dot}<path class="hole" stroke-width="6.4" d="M11 6h0"/>'
    cross = f'{hole}<path class="cross" d="M7 2l8 8m-8 0l8 -8"/>'
    states = {2 if point.dropped else int(point.late) for point in history.points}
    for state, (sign, name) in enumerate([(dot, "datum"), (hole, "before watermark"), (cross, "dropped datum")]):
        if state in states:
            yield _sign(sign), name


def _sign(inside: str) -> str:
    return f'<svg aria-hidden="true">{inside}</svg>'


__all__ = ["Animation", "animation", "data_of", "page_of"]
