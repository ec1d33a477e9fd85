"""Fill the generated parts of the pages in this folder; with --check, only say which are out of date.

A generated part stands between `<!-- generated: name -->` and `<!-- end -->`.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from combiner_choices import USES
from combiner_facts import KINDS, by_use, combiners, forms, memory, promise, retracts
from error_pages import classes_of_errors, errors
from names_by_job import names_by_page, table, value_of
from plain_examples import plain

import uncombine as uc

HERE = Path(__file__).resolve().parent
PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def capabilities() -> str:
    """The capability of each combiner, in general and on some types of its column."""
    lines = ["| combiner | on any input | " + " | ".join(KINDS) + " |", "|---" * (2 + len(KINDS)) + "|"]
    for combiner in (form for cls in combiners() for form in forms(cls)):
        promises = [combiner.capability, *(promise(combiner, kind) for kind in KINDS.values())]
        cells = [f"`{combiner!r}`", *("–" if one is None else one.name for one in promises)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def signature(cls: type) -> str:
    """A call of the class with its arguments and defaults, without types."""
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(cls).parameters.values()]
    return cls.__name__ + str(inspect.Signature(parameters))


def page_text(doc: str) -> str:
    """A docstring as a page's text: examples in blocks, numpydoc headings in bold, long paragraphs as lists."""
    pieces = re.split(r"(^```.*?^```$)", plain(doc), flags=re.DOTALL | re.MULTILINE)
    return "".join(
        piece if i % 2 else "\n\n".join(map(part_text, piece.split("\n\n"))) for i, piece in enumerate(pieces)
    )


def part_text(part: str) -> str:
    """A paragraph of a docstring as text of a page; a long one has a line for each sentence."""
    if heading := re.fullmatch(r"(\w[\w ]*)\n-{3,}\n(.+)", part, flags=re.DOTALL):
        return f"**{heading[1]}**\n\n{part_text(heading[2])}"
    # Two stars are bold in a page, and a power in a docstring.
    pieces = [s if i % 2 else re.sub(r"(?<=\w)\*\*(?=-?\w)", r"\\*\\*", s) for i, s in enumerate(part.split("`"))]
    text = "`".join(pieces)
    if len(part.split()) <= LONG or re.search(r"^( |[-*] )", part, flags=re.MULTILINE):
        return text
    return "\n".join(f"* {sentence}" for sentence in SENTENCES.split(" ".join(text.split())))


SENTENCES = re.compile(r"(?:(?<=\.)|(?<=\.\))) (?=[A-Z(`])")
LONG = 60
"""The most words that a paragraph of a docstring has as one block."""


def reference() -> str:
    """Each combiner with its docstring, by family."""
    families: dict[str, list[type]] = {}
    for cls in combiners():
        families.setdefault(cls.__module__, []).append(cls)
    lines: list[str] = []
    for module, members in families.items():
        title = (inspect.getdoc(sys.modules[module]) or module).partition("\n")[0]
        lines += [f"## {title.rstrip('.')}", ""]
        for cls in members:
            lines += [
                f"### {cls.__name__}",
                "",
                f"`{signature(cls)}`",
                "",
                f"* **For:** {use(cls)}",
                f"* **Retracts:** {facts(cls)[0]}.",
                f"* **Memory of a key:** {facts(cls)[1]}.",
                "",
                page_text(inspect.getdoc(cls) or ""),
                "",
            ]
    return "\n".join(lines)


def overview() -> str:
    """Each combiner in one line, in the order of use: the result, the promise, the state, and where to read on."""
    lines = ["| combiner | result | retracts | memory of a key |", "|---|---|---|---|"]
    for cls in by_use():
        said = " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].split()).replace("|", "\\|")
        lines.append(f"| [{cls.__name__}](#{cls.__name__.lower()}) | {said} | {' | '.join(facts(cls))} |")
    return "\n".join(lines) + "\n"


def facts(cls: type[uc.Combiner]) -> tuple[str, str]:
    """The promise of a combiner to retract rows, and the memory of a key."""
    return (retracts(cls), memory(cls)) if any(forms(cls)) else ("as its parts", "that of its parts")


def use(cls: type[uc.Combiner]) -> str:
    """The use of a combiner."""
    if cls.__name__ not in USES:
        raise SystemExit(f"docs/generate.py: what is {cls.__name__} taken for? Add a line to docs/combiner_choices.py.")
    return USES[cls.__name__]


NAMES = names_by_page({cls.__name__ for cls in combiners()})
"""The names of each page of the reference, but for the combiners, which have one of their own."""


def path_of(name: str) -> str:
    """The full name by which a public name is found in the sources."""
    value = value_of(name)
    value = value.fget if isinstance(value, property) else value
    module = getattr(value, "__module__", None)
    if module is None or not module.startswith("uncombine"):  # an alias, such as a type of a union
        return f"uncombine.{name}"
    return f"{module}.{value.__qualname__}"


def names(page: str) -> str:
    """The names of a page, each with its docstring, one level below the headings that the page has."""
    text = (HERE / "reference" / f"{page}.md").read_text(encoding="utf-8")
    level = 3 if re.search("^## ", text, re.MULTILINE) else 2
    shown = []
    for name in NAMES[page]:
        shown += [f"::: {path_of(name)}", "    options:", f"      heading_level: {level}"]
        if "." in name:  # a method alone would not say whose it is
            called = name.removeprefix("panes.grouping.grouping.")
            shown += [f"      heading: {called}", f"      toc_label: {called}"]
        shown.append("")
    return "\n".join(shown)


def settings() -> str:
    """The settings of a session."""
    from uncombine.sparkops.session import SETTINGS

    rows = [f"| `{name}` | `{value}` |" for name, value in SETTINGS.items()]
    return "\n".join(["| setting | value |", "|---|---|", *rows]) + "\n"


def metrics() -> str:
    """The metrics, with their kinds, units, attributes and names in Prometheus."""
    from uncombine.metrics.instruments import INSTRUMENTS

    rows = []
    for one in INSTRUMENTS:
        by = ", ".join(f"`{name.removeprefix('uncombine.')}`" for name in one.attributes)
        rows.append(f"| `{one.name}` | {one.kind} | `{one.unit}` | `{one.prometheus}` | {by} | {one.about} |")
    head = ["| OpenTelemetry | kind | unit | Prometheus | by | meaning |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


PARTS: dict[str, Callable[[], str]] = {
    "overview": overview,
    "capabilities": capabilities,
    "combiners": reference,
    "settings": settings,
    "metrics": metrics,
    "errors": classes_of_errors,
    **{f"names_{page}": partial(table, names) for page, names in NAMES.items()},
}
"""The parts as the repository has them."""

SITE_PARTS: dict[str, Callable[[], str]] = {
    "errors": errors,
    **{f"names_{page}": partial(names, page) for page in NAMES},
}
"""The parts that are longer on the site: every message of an error, and the whole docstring of a name."""


def filled(text: str, site: bool = False) -> str:
    """A page with its generated parts made again; on the site with the longer ones."""

    def part(found: re.Match[str]) -> str:
        own = PARTS | SITE_PARTS if site else PARTS
        return found[1] + own[found[2]]() + found[3]

    return PART.sub(part, text)


def main() -> int:
    stale = []
    for page in sorted(HERE.rglob("*.md")):
        old = page.read_text(encoding="utf-8")
        new = filled(old)
        if new != old:
            stale.append(page.relative_to(HERE).as_posix())
            if "--check" not in sys.argv:
                page.write_text(new, encoding="utf-8")
    if stale:
        again = "out of date, run .venv/bin/python docs/generate.py:"
        print(again if "--check" in sys.argv else "written:", ", ".join(stale))
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    raise SystemExit(main())
