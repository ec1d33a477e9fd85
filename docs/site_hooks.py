"""Hooks of the site: sources for the reference, parts that only the site has, and links that leave the pages."""

from __future__ import annotations

import ast
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority

HERE = Path(__file__).resolve().parent
ROOT, SOURCES = HERE.parent, HERE.parent / "out" / "sources"
PARAMETERS = re.compile(r"( +)(\*{0,2}\w+(?:, \*{0,2}\w+)+)")
SHORT, FITS = 15, 14
"""The most words of a text that is said again, and the characters of code that fit into a column on a phone."""
PICTURE = r'((?:<a [^>]*>)?<img [^>]*src="([^"]+)"[^>]*>)'
INLINE = re.compile(rf"<pre.*?</pre>|(<code>)([^<]+)(</code>)|{PICTURE}", re.DOTALL)
AFTER = re.compile(r"(?:(?<=[(,=._/])|(?<=[^&]#))(?=[A-Za-z&{\[])")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")


@event_priority(100)
def on_config(config: Any) -> Any:
    """Copy the package to where the reference reads it: the folder of a clone may have any name.

    It is there before the reference looks for it, also at the first build.
    """
    sys.path.insert(0, str(HERE))
    from generate import ROOMS

    package = SOURCES / "uncombine"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    for file in ROOT.glob("*.py"):
        shutil.copy(file, package)
    for room in ROOMS:
        shutil.copytree(ROOT / room, package / room, ignore=shutil.ignore_patterns("__pycache__"))
    for file in package.rglob("*.py"):
        file.write_text(with_headings(file.read_text(encoding="utf-8")), encoding="utf-8")
    return config


def with_headings(source: str) -> str:
    """A module whose docstrings have the heading that the reference expects over their examples."""
    lines, places = source.splitlines(), []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            text = node.body[0]
            own = range(text.lineno - 1, text.end_lineno or text.lineno)
            first = next((i for i in own if lines[i].lstrip().startswith(">>>")), None)
            if first is not None and not any(lines[i].strip() == "Examples" for i in own):
                places.append(first)
    for place in sorted(places, reverse=True):
        space = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
        lines[place:place] = [f"{space}Examples", f"{space}--------"]
    return "\n".join(one_each(lines)) + "\n"


def one_each(lines: list[str]) -> Iterator[str]:
    """The lines with parameters that share a text apart, as the reference gives all of them the type of the first.

    The first has the text. The others have it too if it is short, and else name the first.
    """
    gone = 0
    for place, line in enumerate(lines):
        if gone:
            gone -= 1
            continue
        shared = PARAMETERS.fullmatch(line)
        below = lines[place + 1] if shared and place + 1 < len(lines) else ""
        if shared and below.startswith(f"{shared[1]}    "):
            names = shared[2].split(", ")
            more = takewhile(lambda text, space=shared[1]: text.startswith(f"{space}    "), lines[place + 1 :])
            text = list(more)
            again = text if len(" ".join(text).split()) <= SHORT else [f"{shared[1]}    As for `{names[0]}`."]
            yield from (f"{shared[1]}{names[0]}", *text)
            for name in names[1:]:
                yield from (f"{shared[1]}{name}", *again)
            gone = len(text)
        else:
            yield line


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill the parts that only the site has, and show files outside of the pages by their names."""
    from generate import filled

    folder = (HERE / page.file.src_uri).parent

    def link(found: re.Match[str]) -> str:
        mark, text, target, _place = found.groups()
        if "://" in target or (folder / target).resolve().is_relative_to(HERE):
            return found[0]
        return f"{text} (`{(folder / target).resolve().relative_to(ROOT)}`)" if not mark else text

    # An empty line in what an example prints; its name means something to doctest alone.
    plain = filled(markdown, site=True).replace("<BLANKLINE>\n", "\n")
    return LINK.sub(link, plain)


def on_page_content(html: str, **_: Any) -> str:
    """Long code breaks after its signs and not within a word, and a picture opens in full, as phones need it."""

    def better(found: re.Match[str]) -> str:
        before, code, after, picture, address = found.groups()
        if code:
            words = (AFTER.sub("<wbr>", word) if len(word) > FITS else word for word in code.split(" "))
            return before + " ".join(words) + after
        if picture and not picture.startswith("<a "):
            return f'<a href="{address}">{picture}</a>'
        return found[0]

    return INLINE.sub(better, html)
