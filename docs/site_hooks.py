"""Hooks of the site: sources for the reference, parts that only the site has, and links that leave the pages."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from posixpath import relpath
from typing import Any
from urllib.parse import urlsplit

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

HERE = Path(__file__).resolve().parent
ROOT, SOURCES = HERE.parent, HERE.parent / "out" / "sources"
PARAMETERS = re.compile(r"( *)(\*{0,2}\w+(?:, \*{0,2}\w+)+)")
SHORT, FITS = 15, 14
"""The most words of a text that is said again, and the characters of code that fit into a column on a phone."""
PICTURE = r'((?:<a [^>]*>)?<img [^>]*src="([^"]+)"[^>]*>)'
INLINE = re.compile(rf"<pre.*?</pre>|(<code>)([^<]+)(</code>)|{PICTURE}", re.DOTALL)
AFTER = re.compile(r"(?:(?<=[(,=._/])|(?<=[^&]#))(?=[A-Za-z&{\[])")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")

LOST = (
    "<h1>There is no page at this address</h1>"
    "<p>It may have another name now. Search in the field above, or begin with one of these:</p>"
    '<ul><li><a href="/how-to/index.html">How to</a>: a page for each task</li>'
    '<li><a href="/reference/index.html">Reference</a>: every name, every error</li>'
    '<li><a href="/index.html">Home</a></li></ul>'
)
"""The page of an unknown address."""


@event_priority(100)
def on_config(config: Any) -> Any:
    """Copy the package to where the reference reads it: the folder of a clone may have any name.

    It is there before the reference looks for it, also at the first build.
    """
    sys.path.insert(0, str(HERE))
    rooms = [face.parent for face in ROOT.glob("*/__init__.py")]
    package = SOURCES / "uncombine"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    for file in ROOT.glob("*.py"):
        shutil.copy(file, package)
    for room in rooms:
        shutil.copytree(room, package / room.name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in package.rglob("*.py"):
        path = file.relative_to(SOURCES).with_suffix("").parts
        module = ".".join(path).removesuffix(".__init__")
        file.write_text(for_site(file.read_text(encoding="utf-8"), module), encoding="utf-8")
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the notebooks and their pictures."""
    from notebook_pages import notebooks, page_of, place

    for notebook in notebooks():
        page = page_of(notebook)
        files.append(File.generated(config, place(notebook), content=page.text))
        for name, picture in page.pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=picture))
    return files


def for_site(source: str, module: str) -> str:
    """A module whose docstrings and defaults are as the reference shows them."""
    from defaults import plain_defaults

    source = plain_defaults(source, module)
    lines = source.splitlines()
    nodes = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef))
    texts = [node.body[0] for node in nodes if ast.get_docstring(node)]
    for text in sorted(texts, key=lambda text: text.lineno, reverse=True):
        before = lines[text.lineno - 1][: text.col_offset]
        if not before.strip():
            shown = docstring_for_site(inspect.cleandoc(text.value.value))
            lines[text.lineno - 1 : text.end_lineno] = [before + repr(shown)]
    return "\n".join(lines) + "\n"


def docstring_for_site(text: str) -> str:
    """A docstring with a heading over its examples, which are blocks without prompts."""
    from plain_examples import PROMPT, plain

    if (first := PROMPT.search(text)) and not re.search(r"^Examples$", text, re.MULTILINE):
        text = f"{text[: first.start()]}Examples\n--------\n{text[first.start() :]}"
    return "\n".join(one_each(plain(text).splitlines()))


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


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """Say on the page of an unknown address what to do."""
    if template_name != "404.html":
        return output_content
    base = urlsplit(config.site_url or "").path.rstrip("/")
    return re.sub(r"<h1>404[^<]*</h1>", lambda _: LOST.replace('href="', f'href="{base}'), output_content)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill the parts that only the site has, and show files outside of the pages by their names, but for notebooks."""
    from generate import filled
    from notebook_pages import NOTEBOOKS, place

    folder = (HERE / page.file.src_uri).parent

    def link(found: re.Match[str]) -> str:
        mark, text, target, _place = found.groups()
        if "://" in target or (folder / target).resolve().is_relative_to(HERE):
            return found[0]
        if (folder / target).resolve().is_relative_to(NOTEBOOKS):
            return f"[{text}]({relpath(place(Path(target)), Path(page.file.src_uri).parent)})"
        file = (folder / target).resolve().relative_to(ROOT).as_posix()
        if mark:
            return text
        return f"`{file}`" if file == f"{text}.md" else f"{text} (`{file}`)"

    return LINK.sub(link, filled(markdown, site=True))


def on_page_content(html: str, **_: Any) -> str:
    """Long code breaks after its signs and not within a word or an option, and a picture opens in full, for phones."""

    def better(found: re.Match[str]) -> str:
        before, code, after, picture, address = found.groups()
        if code:
            words = (AFTER.sub("<wbr>", word) if len(word) > FITS else word for word in code.split(" "))
            return before + OPTION.sub(r'<span class="option">\g<0></span>', " ".join(words)) + after
        if picture and not picture.startswith("<a "):
            return f'<a href="{address}">{picture}</a>'
        return found[0]

    return INLINE.sub(better, html)
