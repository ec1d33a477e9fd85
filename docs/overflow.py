"""Pages of the built site that are wider than a window, as a browser shows them: `python docs/overflow.py [site]`.

A page that opens each page in a frame of a width measures it there. It needs Chromium or Chrome, and ends with 1 if a
page is too wide.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

WIDTHS = (390, 1400)
NAMES = ("chromium", "chromium-browser", "google-chrome")
MEASURE = """<!doctype html><title>widths</title><pre id="wide">not done</pre><script>
const wide = [];
const shown = (page, width) => new Promise(done => {
  const frame = document.createElement("iframe");
  frame.style = `border: 0; width: ${width}px; height: 900px`;
  frame.onload = () => setTimeout(() => {
    const root = frame.contentDocument.documentElement;
    if (root.scrollWidth > width) wide.push([page, width, root.scrollWidth]);
    frame.remove();
    done();
  }, 50);
  frame.src = page;
  document.body.append(frame);
});
(async () => {
  for (const page of PAGES) for (const width of WIDTHS) await shown(page, width);
  document.getElementById("wide").textContent = JSON.stringify(wide);
})();
</script>"""


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that writes no log."""

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def browser() -> str | None:
    """The path of a browser, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def too_wide(site: Path, path: str) -> list[tuple[str, int, int]]:
    """The pages that are wider than a window: each with the width of the window and its own."""
    names = sorted(file.relative_to(site).as_posix() for file in site.rglob("*.html"))
    page = MEASURE.replace("PAGES", json.dumps(names)).replace("WIDTHS", json.dumps(WIDTHS))
    measuring = site / "widths.html"
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        measuring.write_text(page, encoding="utf-8")
        with tempfile.TemporaryDirectory() as profile:
            command = [path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
            command += ["--no-first-run", f"--user-data-dir={profile}", "--virtual-time-budget=600000", "--dump-dom"]
            command += [f"http://127.0.0.1:{server.server_port}/widths.html"]
            dom = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    finally:
        measuring.unlink(missing_ok=True)
        server.shutdown()
        server.server_close()
    found = re.search(r'<pre id="wide">(.*?)</pre>', dom, re.DOTALL)
    return [tuple(one) for one in json.loads(unescape(found[1]))] if found else []


def main() -> int:
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "out/site")
    path = browser()
    if path is None:
        print(f"no browser is here, which is one of {', '.join(NAMES)}")
        return 2
    wide = too_wide(site, path)
    for page, width, own in wide:
        print(f"{page} is {own} px wide in a window of {width} px")
    return 1 if wide else 0


if __name__ == "__main__":
    raise SystemExit(main())
