"""An animation of panes, step by step: one HTML file with all pictures in it, which needs no server.

Guarded by tests/plot/test_plot.py.
"""

from __future__ import annotations

import base64
import html
import io
import json
from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import InvalidArgument
from ..local.script import Clock, Elements, Entry, Watermark, check_script
from ..windows import time_text, timestamp
from .pane_picture import Picture, draw_all, pictures_of
from .style import panels, text_of

MOST = 120
"""The most steps that an animation has; of a longer script, some entries are shown together."""


def animation(
    path: str | PathLike[str],
    result: Any,
    script: Sequence[Entry],
    *,
    time: str | Mapping[str, str] = "ts",
    value: str | None = None,
    datum: str | None = None,
    where: Mapping[str, Any] | None = None,
    by: str | Sequence[str] | None = None,
    labels: str | Collection[str] = "fit",
    title: str = "Panes, step by step",
    figsize: tuple[float, float] | None = None,
) -> Path:
    """Write an HTML page that plays the panes of a run, entry by entry of its script.

    The page has buttons, a slider and a sentence for each step. It is one file: open it in a browser.

    Parameters
    ----------
    path
        The file to write.
    result
        The result of `flow.run(script)`, whose column `step` says which entry gave a pane.
    script
        The script that gave it.
    time, value, datum, where, by, labels, title, figsize
        As for `panes`.

    Returns
    -------
    pathlib.Path
        The path of the file.

    Examples
    --------
    >>> import tempfile, uncombine as uc
    >>> script = [uc.Elements([{"ts": 0, "x": 5}], at=60_000_000), uc.Watermark(120_000_000)]
    >>> result = uc.flow(script).window(uc.Fixed("1 minute")).combine(total=uc.Sum("x")).run()
    >>> uc.plot.animation(f"{tempfile.mkdtemp()}/panes.html", result, script).name
    'panes.html'
    """
    from matplotlib.figure import Figure

    entries = check_script(script)
    pictures = pictures_of(result, entries, time=time, value=value, datum=datum, where=where, by=by)
    if "step" not in getattr(result, "column_names", ()):
        raise InvalidArgument("an animation needs the column 'step' of a run in this process: write flow.run(script)")
    rows, columns = panels(len(pictures))
    size = figsize or ((9.0, 5.6) if len(pictures) == 1 else (3.0 + 5.2 * columns, 1.2 + 2.7 * rows))
    steps = _steps(len(entries))
    frames, captions, before = [], [], 0
    for last in steps:
        figure = Figure(figsize=size)
        draw_all(figure, pictures, labels, until=last)
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=96)
        frames.append("data:image/png;base64," + base64.b64encode(out.getvalue()).decode())
        captions.append(_caption(entries[before : last + 1], pictures, before, last))
        before = last + 1
    page = _PAGE.replace("@title@", html.escape(title)).replace("@most@", str(len(frames) - 1))
    safe = json.dumps(captions).replace("<", "\\u003c")
    page = page.replace("@frames@", json.dumps(frames)).replace("@captions@", safe)
    Path(path).write_text(page, encoding="utf-8")
    return Path(path)


def _steps(count: int) -> list[int]:
    """The last entry of each step."""
    if count <= MOST:
        return list(range(count))
    return sorted({(i + 1) * count // MOST - 1 for i in range(MOST)})


def _caption(entries: Sequence[Entry], pictures: Sequence[Picture], first: int, last: int) -> str:
    """A sentence on the entries of a step, and one on the panes that they gave."""
    said = [_words(entry) for entry in entries[:2]] + ([f"and {len(entries) - 2} more entries"] if entries[2:] else [])
    panes = [(p.diff, p) for picture in pictures for p in picture.panes if first <= p.step <= last]
    shown = [f"{p.timing.lower().replace('_', ' ')} {text_of(p.value)}" for diff, p in panes if diff > 0]
    retracted = [text_of(p.value) for diff, p in panes if diff < 0]
    parts = [f"Step {last + 1}: {'; '.join(said)}."]
    if retracted:
        parts.append(f"Retracted: {_listed(retracted)}.")
    parts.append(f"Panes: {_listed(shown)}." if shown else "No pane.")
    return " ".join(parts)


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(texts[:6]) + (f" and {len(texts) - 6} more" if len(texts) > 6 else "")


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


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@title@</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 1.5rem auto; padding: 0 1rem }
body { color: #222; background: #fff }
h1 { font-size: 1.3rem }
img { width: 100%; height: auto; border: 1px solid #ddd }
p { min-height: 3em }
.controls { display: flex; gap: .5rem; align-items: center }
input { flex: 1 }
button { font: inherit; min-width: 2.6em; padding: .3em .7em }
</style>
<h1>@title@</h1>
<img id="picture" alt="Panes after this step">
<div class="controls">
<button id="back" aria-label="one step back">&lsaquo;</button>
<button id="play">Play</button>
<button id="on" aria-label="one step on">&rsaquo;</button>
<input id="step" type="range" min="0" max="@most@" value="0" aria-label="step">
</div>
<p id="caption" aria-live="polite"></p>
<script>
const frames = @frames@, captions = @captions@;
const part = name => document.getElementById(name);
let timer = null;
function show(step) {
  step = Math.max(0, Math.min(frames.length - 1, step));
  part("step").value = step;
  part("picture").src = frames[step];
  part("caption").textContent = captions[step];
}
const now = () => Number(part("step").value);
function stop() { clearInterval(timer); timer = null; part("play").textContent = "Play"; }
part("step").oninput = () => { stop(); show(now()); };
part("back").onclick = () => { stop(); show(now() - 1); };
part("on").onclick = () => { stop(); show(now() + 1); };
part("play").onclick = () => {
  if (timer) return stop();
  if (now() === frames.length - 1) show(0);
  part("play").textContent = "Stop";
  timer = setInterval(() => { if (now() >= frames.length - 1) stop(); else show(now() + 1); }, 900);
};
document.onkeydown = event => {
  if (event.key === "ArrowRight") show(now() + 1);
  if (event.key === "ArrowLeft") show(now() - 1);
};
show(0);
</script>
</html>
"""

__all__ = ["animation"]
