"""Fill the generated parts of the pages in this folder; with --check, only say which are out of date.

A generated part stands between `<!-- generated: name -->` and `<!-- end -->`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import uncombine as uc

HERE = Path(__file__).resolve().parent
PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

# What stands for an argument that has no default, by the argument's name.
ARGUMENTS: dict[str, Any] = {
    "input": "x", "x": "x", "y": "y", "by": "t", "weight": "w",
    "k": 3, "edges": (0, 10, 20), "q": 0.5, "quantiles": (0.25, 0.75),
}  # fmt: skip
# The same for one combiner, where an argument's name means another thing.
OF_ONE: dict[tuple[str, str], Any] = {("ApproxQuantiles", "q"): (0.25, 0.75), ("Quantiles", "q"): (0.25, 0.75)}
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
    """A docstring as a page's text: examples fenced, numpydoc headings in bold."""
    text = re.sub(r"^(\w[\w ]*)\n-{3,}$", r"**\1**\n", doc, flags=re.MULTILINE)
    return re.sub(r"^>>>.*?(?=\n\n|\Z)", r"```pycon\n\g<0>\n```", text, flags=re.MULTILINE | re.DOTALL)


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


PARTS = {"capabilities": capabilities, "combiners": reference}


def filled(text: str) -> str:
    """A page with its generated parts made again."""
    return PART.sub(lambda found: found[1] + PARTS[found[2]]() + found[3], text)


def main() -> int:
    stale = []
    for page in sorted(HERE.glob("*.md")):
        old = page.read_text(encoding="utf-8")
        new = filled(old)
        if new != old:
            stale.append(page.name)
            if "--check" not in sys.argv:
                page.write_text(new, encoding="utf-8")
    if stale:
        print("out of date, run make docs:" if "--check" in sys.argv else "written:", ", ".join(stale))
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    raise SystemExit(main())
