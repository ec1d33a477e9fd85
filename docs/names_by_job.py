"""The public names by job: a page of the reference for each room, read from `__all__`.

A name that is new, moved or renamed needs no line here: the module of its value says its page. `generate.py` fails in
one sentence if a module belongs to no page.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any, get_origin, get_type_hints

from defaults import with_defaults

import uncombine as uc
from uncombine.advice import own_names

# The page of a module; the longest beginning that fits counts.
PAGES = {
    "uncombine.flows": "flow",
    "uncombine.doors": "flow",
    "uncombine.files": "flow",
    "uncombine.kafka": "flow",
    "uncombine.lakehouse": "flow",
    "uncombine.panes.grouping.grouping": "flow",
    "uncombine.panes.process": "steps",
    "uncombine.panes.watermarks": "strategies",
    "uncombine.windows": "windows",
    "uncombine.triggers": "triggers",
    "uncombine.combiners": "building",
    "uncombine.lookbacks": "building",
    "uncombine.combiners.expressions": "expressions",
    "uncombine.combiners.laws": "testing",
    "uncombine.changelog": "changelog",
    "uncombine.changelogs": "changelog",
    "uncombine.messages": "messages",
    "uncombine.flows.result": "run",
    "uncombine.flows.early_end": "run",
    "uncombine.local": "run",
    "uncombine.comparing": "run",
    "uncombine.evolution": "run",
    "uncombine.flows.evolution": "run",
    "uncombine.tables.comparison": "run",
    "uncombine.plot": "plot",
    "uncombine.plot.costs": "run",
    "uncombine.testing": "testing",
    "uncombine.metrics": "metrics",
    "uncombine.sparkops": "spark",
    "uncombine.sparkops.measuring.batch_numbers": "progress",
    "uncombine.sparkops.progress": "progress",
    "uncombine.sparkops.checkpoints.contents": "progress",
    "uncombine.sparkops.reasons": "progress",
    "uncombine.sparkops.session": "flow",
}

# Rooms whose names are written with the room, and the few of a room that are for users.
ROOMS: dict[str, tuple[str, ...] | None] = {
    "changelog": None,
    "messages": None,
    "metrics": None,
    "plot": None,
    "testing": None,
    "combiners.laws": ("check_laws", "machine", "typed"),
    "sparkops": None,
    "panes.grouping.grouping": ("Grouping",),
}

# Classes whose methods users call, and the methods that only the library calls.
METHODS: dict[str, set[str]] = {
    "Flow": set(),
    "Accumulator": set(),
    "Combiner": {"capability", "compile", "tolerance", "append_only"},
    "CombineFn": {"fields", "is_zero", "nullable"},
    "Expr": {"columns"},
    "Expr.dt": set(),
    "Expr.str": set(),
    "Trigger": {"children", "words", "labels"},
    "KeyFunction": set(),
    "KeyContext": {"advance", "alive", "wake"},
    "BroadcastFunction": {"on_row", "on_timer"},
    "Result": set(),
    "Seen": set(),
    "Comparison": set(),
    "Evolution": set(),
    "Deletion": set(),
    "Checkpoint": set(),
    "metrics.Exporter": set(),
}

STEPS = {
    *("where", "sample", "select", "drop", "rename", "with_columns", "with_time", "map", "flat_map", "pipe"),
    *("distinct", "in_order", "process", "output", "rolling"),
}
"""The methods of a flow that have the page of steps."""

# Names in the order of use; the others of a page follow.
FIRST = [
    *("flow", "Files", "Tuning", "session", "Flow", "Flow.window", "Flow.combine", "Flow.join"),
    *("Flow.join_asof", "Flow.join_rolling", "union", "together"),
    *("Fixed", "Sliding", "Sessions", "Global", "Calendar", "Custom", "Inherit", "span", "timestamp"),
    *("BoundedLag", "Monotonic", "PerSource", "Punctuated", "IngressTime", "ProcessingTime", "EachBatch"),
    *("Flow.run", "Flow.collect", "Flow.to_pandas", "Flow.to_polars", "Flow.to_arrow", "Flow.show", "Flow.head"),
    *("Flow.df", "Flow.to_table", "Flow.write_stream"),
    *("Flow.foreach_batch", "Flow.left_out", "Flow.replay"),
    *("Elements", "Watermark", "Clock", "Result", "Result.table", "Result.collect", "Result.to_pandas"),
    *("Result.to_polars", "Result.to_arrow", "Result.to_table", "Seen", "compare"),
    *("col", "when", "coalesce", "concat", "Expr", "progress", "watch"),
    *("testing.check_flow", "testing.check_script", "testing.check_evolution", "testing.assert_rows"),
    *("aggregate", "Combiner", "Combiner.where", "Combiner.of", "Combiner.map", "Combiner.bind"),
    *("CombineFn", "CombineFn.add", "CombineFn.merge", "CombineFn.uncombine", "CombineFn.negate"),
]


def value_of(name: str) -> Any:
    """The value of a public name, which may have dots."""
    value: Any = uc
    for part in name.split("."):
        value = getattr(class_of(value), part)
    return value


def class_of(value: Any) -> Any:
    """The class of which a property gives a value; any other value as it is."""
    if not isinstance(value, property):
        return value
    kind = get_type_hints(value.fget)["return"]
    return get_origin(kind) or kind


def exported() -> Iterator[str]:
    """The names of the package and of its rooms, each value once."""
    seen: set[int] = set()
    for room, some in {"": None, **ROOMS}.items():
        home = value_of(room) if room else uc
        listed = [*uc.__all__, *uc.ON_SPARK] if home is uc else getattr(home, "__all__", some)
        for name in listed if some is None else [name for name in some if name in listed]:
            value = getattr(home, name)
            if not inspect.ismodule(value) and value is not uc.UncombineError and id(value) not in seen:
                seen.add(id(value))
                yield f"{room}.{name}" if room else name


def with_methods(name: str) -> Iterator[str]:
    """A name, and the methods after it if it is a class of which users call them."""
    yield name
    if name in METHODS:
        owner = class_of(value_of(name))
        parts = [kind for kind in reversed(owner.__mro__) if kind.__module__.startswith("uncombine.")]
        for method, value in {method: value for kind in parts for method, value in vars(kind).items()}.items():
            called = inspect.isfunction(value) or isinstance(value, property | classmethod)
            if called and method in own_names(owner) and method not in METHODS[name]:
                yield from with_methods(f"{name}.{method}")


def page_of(name: str) -> str:
    """The page of a name, by the module of its value."""
    owner, _, method = name.rpartition(".")
    if owner == "Flow" and method in STEPS:
        return "steps"
    value = class_of(value_of(owner if owner in METHODS else name))
    module = getattr(value, "__module__", None) or ""
    if not module.startswith("uncombine"):  # an alias, such as a type of a union
        module = f"uncombine.{owner}"
    parts = module.split(".")
    for length in range(len(parts), 1, -1):
        if page := PAGES.get(".".join(parts[:length])):
            return page
    raise SystemExit(f"docs/names_by_job.py: no page has {module}, the module of {name}: add it to PAGES.")


def names_by_page(left_out: set[str]) -> dict[str, list[str]]:
    """The names of each page in their order, without those that have a page of their own."""
    pages: dict[str, list[str]] = {page: [] for page in dict.fromkeys(PAGES.values())}
    for name in (full for short in exported() if short not in left_out for full in with_methods(short)):
        pages[page_of(name)].append(name)
    place = {name: n for n, name in enumerate(FIRST)}
    return {page: sorted(names, key=lambda name: place.get(name, len(place))) for page, names in pages.items()}


def row(name: str) -> str:
    """A name with its arguments, and the first sentence of its docstring, as a row of a table."""
    value = value_of(name)
    text = inspect.getdoc(value.fget if isinstance(value, property) else value) or ""
    said = " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")
    return f"| `{name}{arguments(name, value)}` | {said} |"


def arguments(name: str, value: Any) -> str:
    """The arguments of a function or a class with their defaults, without types; nothing for what nobody calls."""
    if not callable(value) or name in METHODS or inspect.isabstract(value):
        return ""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return ""
    texts: list[str] = []
    for one in parameters:
        if one.name in ("self", "cls"):
            continue
        if one.kind is one.VAR_KEYWORD:
            options = options_of(value, one.name)
            texts += [*([] if any(t.startswith("*") for t in texts) else ["*"]), *options] if options else [str(one)]
        else:
            if one.kind is one.KEYWORD_ONLY and not any(t.startswith("*") for t in texts):
                texts.append("*")
            texts.append(str(with_defaults(value, one).replace(annotation=one.empty)))
    return f"({', '.join(text.split(':')[0] if text.startswith('**') else text for text in texts)})"


def options_of(function: Any, name: str) -> list[str]:
    """The names of options that a function takes as one typed dictionary."""
    text = str(inspect.signature(function).parameters[name].annotation)
    if not text.startswith("Unpack["):
        return []
    options = eval(text[len("Unpack[") : -1], vars(sys.modules[function.__module__]))
    return list(get_type_hints(options))


def table(names: list[str]) -> str:
    """The names of a page as a table."""
    return "\n".join(["| name | in one line |", "|---|---|", *map(row, names)]) + "\n"
