"""Fill the generated parts of the pages in this folder; with --check, only say which are out of date.

A generated part stands between `<!-- generated: name -->` and `<!-- end -->`.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from names_by_job import names_by_page, table, value_of

import uncombine as uc
from uncombine.combiners.plan import Plan

HERE = Path(__file__).resolve().parent
PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

# What stands for an argument that has no default, by the argument's name.
ARGUMENTS: dict[str, Any] = {
    "input": "x", "x": "x", "y": "y", "by": "t", "weight": "w",
    "k": 3, "edges": (0, 10, 20), "q": 0.5, "quantiles": (0.25, 0.75),
}  # fmt: skip
# The same for one combiner, where an argument's name means another thing.
OF_ONE: dict[tuple[str, str], Any] = {("ApproxQuantiles", "q"): (0.25, 0.75), ("Quantiles", "q"): (0.25, 0.75)}
ROOMS = tuple(sorted(face.parent.name for face in HERE.parent.glob("*/__init__.py")))
SWITCHES = ("exact", "retractable")
KINDS = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string(), "bool": pa.bool_()}


def combiners() -> Iterator[type[uc.Combiner]]:
    """The exported combiner classes."""
    for name in uc.combiners.__all__:
        value = getattr(uc.combiners, name)
        if inspect.isclass(value) and issubclass(value, uc.Combiner) and not inspect.isabstract(value):
            yield value


def forms(cls: type[uc.Combiner]) -> Iterator[uc.Combiner]:
    """A combiner with its switches one way and the other; none for those that are made of other combiners."""
    if not dataclasses.is_dataclass(cls):
        return
    fields = [field for field in dataclasses.fields(cls) if field.init]
    required = [f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING]
    if {"combiner", "combiners", "parts"} & set(required):
        return
    unknown = [name for name in required if name not in ARGUMENTS]
    if unknown:
        raise SystemExit(f"docs/generate.py: what stands for {unknown[0]!r} of {cls.__name__}? Add it to ARGUMENTS.")
    plain = cls(**{name: OF_ONE.get((cls.__name__, name), ARGUMENTS[name]) for name in required})
    yield plain
    for field in fields:
        if field.name in SWITCHES:
            yield dataclasses.replace(plain, **{field.name: not field.default})


def promise(combiner: uc.Combiner, kind: pa.DataType) -> str:
    """The capability of a combiner over columns of one type; a dash if it does not take them."""
    others = {"t": pa.timestamp("us"), "w": pa.float64() if pa.types.is_floating(kind) else pa.int64()}
    try:
        return combiner.compile(pa.schema({"x": kind, "y": kind, **others})).capability.name
    except uc.UncombineError:
        return "–"


def capabilities() -> str:
    """The capability of each combiner, in general and on some types of its column."""
    lines = ["| combiner | on any input | " + " | ".join(KINDS) + " |", "|---" * (2 + len(KINDS)) + "|"]
    for combiner in (form for cls in combiners() for form in forms(cls)):
        cells = [f"`{combiner!r}`", combiner.capability.name]
        cells += [promise(combiner, kind) for kind in KINDS.values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def signature(cls: type) -> str:
    """A call of the class with its arguments and defaults, without types."""
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(cls).parameters.values()]
    return cls.__name__ + str(inspect.Signature(parameters))


def page_text(doc: str) -> str:
    """A docstring as a page's text: examples fenced, numpydoc headings in bold, long paragraphs as lists."""
    return "\n\n".join(map(part_text, doc.split("\n\n")))


def part_text(part: str) -> str:
    """A paragraph or an example of a docstring as text of a page; a long paragraph has a line for each sentence."""
    if part.startswith(">>>"):
        return f"```pycon\n{part}\n```"
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
                page_text(inspect.getdoc(cls) or ""),
                "",
            ]
    return "\n".join(lines)


def overview() -> str:
    """Each combiner in one line, in the order of use: the result, the promise, the state, and where to read on."""
    lines = ["| combiner | result | retracts | state of a group |", "|---|---|---|---|"]
    for cls in sorted(combiners(), key=lambda cls: USED.index(cls.__name__) if cls.__name__ in USED else len(USED)):
        said = " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].split()).replace("|", "\\|")
        plain = next(forms(cls), None)
        promised = "as its parts" if plain is None else plain.capability.words
        state = "that of its parts" if plain is None else state_of(plain)
        lines.append(f"| [{cls.__name__}](#{cls.__name__.lower()}) | {said} | {promised} | {state} |")
    return "\n".join(lines) + "\n"


USED = ["Count", "Sum", "Mean", "Min", "Max", "Median", "Quantile", "CountDistinct", "CountIf", "StdDev", "Variance"]
USED += ["First", "Last", "ArgMax", "ArgMin", "TopK", "BottomK", "CollectList", "CollectSet"]
"""The combiners that are used most, which come first in the table."""


def state_of(combiner: uc.Combiner) -> str:
    """The Arrow types of the accumulators of a combiner, over the first type of column that it takes."""
    others = {"t": pa.timestamp("us"), "w": pa.float64()}
    for kind in (pa.int64(), pa.float64(), pa.bool_(), pa.string()):
        try:
            fields = Plan({"r": combiner}, pa.schema({"x": kind, "y": kind, **others})).fields
        except uc.UncombineError:
            continue
        return ", ".join(f"`{short(field.type)}`" for field in fields) + f" for {kind}"
    return "–"


def short(kind: pa.DataType) -> str:
    """A type without the fields inside of it."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{short(kind.value_type)}>"
    return "struct" if pa.types.is_struct(kind) else str(kind)


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
        shown += [f"::: {path_of(name)}", "    options:", f"      heading_level: {level}", ""]
    return "\n".join(shown)


def settings() -> str:
    """The settings of a session."""
    from uncombine.sparkops.session import SETTINGS

    rows = [f"| `{name}` | `{value}` |" for name, value in SETTINGS.items()]
    return "\n".join(["| setting | value |", "|---|---|", *rows]) + "\n"


def classes_of_errors() -> str:
    """Each class of errors in one line."""
    kinds = [value for value in vars(uc.errors).values() if inspect.isclass(value)]
    ours = [kind for kind in kinds if issubclass(kind, uc.UncombineError) and kind.__module__ == uc.errors.__name__]
    lines = [f"| `{kind.__name__}` | {' '.join((inspect.getdoc(kind) or '').split())} |" for kind in ours]
    return "\n".join(["| class | raised if |", "|---|---|", *lines]) + "\n"


def errors() -> str:
    """Each class of errors, and the messages that it has; a part that differs is written as three dots."""
    found: dict[str, set[str]] = {}
    for file in (file for room in ROOMS for file in (HERE.parent / room).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                called, text = ast.unparse(node.exc.func), message(node.exc.args[0])
                if hasattr(uc.errors, called) and len(text.replace("...", "")) > 20:
                    found.setdefault(called, set()).add(text)
    lines: list[str] = []
    for name, texts in found.items():
        said = " ".join((inspect.getdoc(getattr(uc.errors, name)) or "").split())
        lines += [f"## {name}", "", said, "", *(f"* `{text}`" for text in sorted(texts, key=str.casefold)), ""]
    return "\n".join(lines)


def message(node: ast.expr) -> str:
    """The text of a message."""
    if isinstance(node, ast.Constant):
        return str(node.value).replace("`", "'").replace("\n", " ")
    if isinstance(node, ast.JoinedStr):
        return "".join(message(part) for part in node.values)
    return "..."


PARTS: dict[str, Callable[[], str]] = {
    "overview": overview,
    "capabilities": capabilities,
    "combiners": reference,
    "settings": settings,
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
