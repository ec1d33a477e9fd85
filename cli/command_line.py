"""The command `uncombine`: a demo, replays of files, law checks, and the contents of checkpoints.

It ends with 0 if all is well, 1 if a check failed, and 2 if it was used wrongly, which one line on stderr says.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .. import Elements, UncombineError, Watermark, __version__
from ..doors import flow
from ..errors import InvalidArgument, LawViolation, LibraryMissing, require_column
from ..files.data_paths import data_paths, missing
from ..files.formats import format_of
from ..files.listing import list_files
from ..files.reading import describe
from ..local.data_files import LocalFiles
from ..local.script import with_times
from ..local.script_run import LocalRun
from ..local.sources import LocalSource
from ..panes.showing import TablePreview, shown_rows
from ..plot import picture_file
from ..triggers import TRIGGER_WORDS, as_trigger
from ..windows import WINDOW_WORDS, as_window
from .module_names import object_at
from .progress_bar import progress_bar
from .words import combiner_of

FAILED, WRONG = 1, 2

MOST_BUNDLES = 2000
"""The most entries that a replay has; rows of a larger file arrive together."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the result is its exit code.

    >>> from uncombine.cli.command_line import main
    >>> main(["replay", "no.parquet", "--window", "fixed 1 minute", "--combine", "n=count"])
    2
    """
    parser = parser_of()
    namespace = parser.parse_args(arguments)
    if namespace.command is None:
        parser.print_help()
        return WRONG
    try:
        code = int(namespace.run(namespace))
        sys.stdout.flush()
        return code
    except LawViolation as error:
        print(f"uncombine: {error}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; the interpreter must not write the rest as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (UncombineError, OSError, ImportError, pa.ArrowException) as error:
        print(f"uncombine: {' '.join(str(error).split())}", file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        return 130


def parser_of() -> argparse.ArgumentParser:
    """The options of the command and of its parts."""
    parser = argparse.ArgumentParser("uncombine", description="Aggregations with windows, triggers and retractions.")
    parser.add_argument("--version", action="version", version=f"uncombine {__version__}")
    parts = parser.add_subparsers(dest="command", metavar="COMMAND")
    demo = parts.add_parser("demo", help="show retractions, run them on Spark, and draw panes into out/")
    demo.set_defaults(run=_demo)

    replay = parts.add_parser("replay", help="replay a file of events through windows and a trigger, without Spark")
    replay.add_argument("file", help="a file, folder or pattern: parquet, arrow, csv, or json with a row a line")
    replay.add_argument("--time", default="ts", help="the event time column (default: ts)")
    replay.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="replay only the rows with this value; may be repeated",
    )
    replay.add_argument("--by", action="append", default=[], metavar="COLUMN", help="a key column; may be repeated")
    replay.add_argument("--window", required=True, help=WINDOW_WORDS)
    replay.add_argument("--trigger", default="watermark", help=f"{TRIGGER_WORDS} (default: watermark)")
    replay.add_argument(
        "--combine",
        action="append",
        required=True,
        metavar="NAME=FUNCTION:COLUMN",
        help="a result, such as total=sum:score or n=count; may be repeated",
    )
    replay.add_argument(
        "--processing-time", metavar="COLUMN", help="when each row arrived; the order of the file if not given"
    )
    replay.add_argument(
        "--lag", default="0 seconds", help="the watermark is the latest event time less this (default: 0 seconds)"
    )
    replay.add_argument(
        "--lateness", default="0 seconds", help="how long windows accept late rows (default: 0 seconds)"
    )
    replay.add_argument("--diff", metavar="COLUMN", help="the weight column of a changelog")
    modes = ["accumulating", "discarding", "retracting"]
    replay.add_argument(
        "--mode", choices=modes, default="retracting", help="how panes of a window relate (default: retracting)"
    )
    replay.add_argument("--table", action="store_true", help="show what is left at the end, and not each pane")
    replay.add_argument("--limit", type=int, default=50, help="the most rows that are shown (default: 50)")
    replay.add_argument(
        "--plot", metavar="FILE", help="draw the panes: an .html file plays them, .png or .svg is a picture"
    )
    replay.add_argument("--json", action="store_true", help="print a JSON object a row")
    replay.set_defaults(run=_replay)

    laws = parts.add_parser("laws", help="check a combiner of your own against the laws of its capability")
    laws.add_argument("combiner", metavar="MODULE:NAME", help="a combiner, or a function that makes one")
    laws.add_argument("--examples", type=int, default=200, help="the number of examples (default: 200)")
    laws.add_argument("--seed", type=int, help="a number that fixes the examples")
    laws.add_argument("--json", action="store_true", help="print the result as JSON")
    laws.set_defaults(run=_laws)

    checkpoint = parts.add_parser("checkpoint", help="show what a checkpoint holds (starts Spark)")
    checkpoint.add_argument("path", help="the folder of the checkpoint")
    checkpoint.add_argument("--json", action="store_true", help="print the result as JSON")
    checkpoint.set_defaults(run=_checkpoint)

    check = parts.add_parser("check", help="say what a restart of a flow from a checkpoint would do (starts Spark)")
    check.add_argument("flow", metavar="MODULE:NAME", help="a streaming flow, or a function that makes one")
    check.add_argument("--checkpoint", required=True, metavar="PATH", help="the folder of the checkpoint")
    check.add_argument(
        "--same",
        action="append",
        default=[],
        metavar="STEP",
        help="a step that is written otherwise and computes the same, such as 'map 2'; may be repeated",
    )
    check.add_argument("--json", action="store_true", help="print the result as JSON")
    check.set_defaults(run=_check)

    completion = parts.add_parser("completion", help='print a completion script: eval "$(uncombine completion bash)"')
    completion.add_argument("shell", choices=["bash", "fish", "tcsh", "zsh"])
    completion.set_defaults(run=_completion)
    return parser


def _demo(arguments: argparse.Namespace) -> int:
    from . import demo

    demo.main()
    return 0


def _replay(arguments: argparse.Namespace) -> int:
    window, trigger = as_window(arguments.window, "--window"), as_trigger(arguments.trigger, "--trigger")
    results = dict(map(combiner_of, arguments.combine))
    if arguments.plot:
        picture_file.check_path(arguments.plot, "--plot")
    with progress_bar(f"reading {arguments.file}"):
        rows = _rows(arguments)
    stream = flow(rows.schema, time=arguments.time, watermark=arguments.lag, diff=arguments.diff)
    assert isinstance(stream.source, LocalSource)
    # A file has an end, where a window of all time is shown.
    source = replace(stream, source=replace(stream.source, streaming=False))
    options = {"mode": arguments.mode, "allowed_lateness": arguments.lateness}
    panes = source.window(window, trigger, **options).combine(by=arguments.by, **results)
    script = _script(rows, arguments.processing_time)
    with progress_bar("replaying", len(script)) as done:
        result = LocalRun(panes).all(script, done)
    shown = result.table(flat=True).drop_columns(["diff"]) if arguments.table else _flat(result)
    _show(shown, arguments)
    counts = {name: count for name, count in result.counts().items() if count}
    if counts and not arguments.json:
        print(f"\n{', '.join(f'{name}: {count}' for name, count in counts.items())}")
    sys.stdout.flush()
    if arguments.plot:
        with progress_bar(f"drawing {arguments.plot}", picture_file.STEPS) as done:
            title = f"{arguments.file}: {arguments.window}"
            picture_file.save(arguments.plot, result, script, title=title, time=arguments.time, done=done)
        print(f"wrote {arguments.plot}", file=sys.stderr)
    return 0


def _rows(arguments: argparse.Namespace) -> pa.Table:
    """The rows of the file in the order in which they arrived, with timestamps as times."""
    paths = data_paths(arguments.file)
    files = () if missing(paths) else tuple(list_files(paths))
    if not files:
        raise InvalidArgument(f"there is no file {arguments.file!r}")
    described = describe(paths, None if any(map(format_of, files)) else "parquet", files=files)
    table = LocalFiles(paths=paths, listed=files, format=described, schema=described.schema, streaming=False).whole()
    times = [arguments.time, *filter(None, [arguments.processing_time])]
    for name in times:
        require_column(name, table.column_names, "--time" if name == arguments.time else "--processing-time")
        try:
            table = with_times(table, [name])
        except InvalidArgument as error:
            raise InvalidArgument(f"column {name!r} has no times: {error}") from None
    for chosen in arguments.where:
        table = _chosen(table, chosen)
    return table.sort_by(arguments.processing_time) if arguments.processing_time else table


def _chosen(table: pa.Table, chosen: str) -> pa.Table:
    """The rows with a value that `column=value` names; without a value those of null."""
    name, equals, value = chosen.partition("=")
    if not equals:
        raise InvalidArgument(f"--where takes COLUMN=VALUE such as user=ada, but was given {chosen!r}")
    require_column(name, table.column_names, "--where")
    texts = table[name].cast(pa.string())
    rows = table.filter(pc.equal(texts, value) if value else pc.or_kleene(pc.is_null(texts), pc.equal(texts, "")))
    if not rows.num_rows:
        raise InvalidArgument(f"--where {chosen!r} leaves no row of {table.num_rows:,}")
    return rows


def _script(rows: pa.Table, at: str | None) -> list[Elements | Watermark]:
    """The rows as entries in the order of their arrival, and then the end of the input."""
    size = max(1, -(-rows.num_rows // MOST_BUNDLES))
    script: list[Elements | Watermark] = []
    shows = sys.stderr.isatty()
    for start in range(0, rows.num_rows, size):
        some = rows.slice(start, size)
        script.append(Elements(some, None if at is None else pc.max(some[at]).as_py()))
    if shows and size > 1:
        print(f"{rows.num_rows:,} rows in {len(script):,} bundles of {size}", file=sys.stderr)
    return [*script, Watermark(None)]


def _flat(result: Any) -> pa.Table:
    frame = result.to_pandas(flat=True)
    return pa.Table.from_pandas(frame.drop(columns=["event_time", "step"]), preserve_index=False)


def _show(table: pa.Table, arguments: argparse.Namespace) -> None:
    if not arguments.json:
        print(shown_rows(table, arguments.limit).text())
        return
    for row in table.slice(0, arguments.limit).to_pylist():
        print(json.dumps(row, default=str))


def _laws(arguments: argparse.Namespace) -> int:
    from ..combiners.laws import check_laws

    combiner = _named(arguments.combiner)
    problem = None
    try:
        check_laws(combiner, max_examples=arguments.examples, seed=arguments.seed)
    except LawViolation as error:
        problem = error
    if arguments.json:
        failure = {"law": problem.law, "message": str(problem)} if problem else {}
        print(json.dumps({"combiner": arguments.combiner, "passed": problem is None, **failure}))
    elif problem is None:
        capability = getattr(combiner, "capability", None) or combiner.fn.capability
        print(f"{arguments.combiner} keeps the laws of {capability.name}")
    else:
        print(f"uncombine: {problem}", file=sys.stderr)
    return FAILED if problem else 0


def _named(text: str) -> Any:
    """The combiner at `module:name`; a function or class without arguments is called."""
    target = object_at(text, "laws", "mine:Spread")
    made: Any = target
    if hasattr(getattr(target, "fn", None), "capability"):
        return target  # a factory that `from_scalar` or `from_columns` made, which the law kit takes as it is
    if callable(made) and (isinstance(made, type) or not hasattr(made, "capability")):
        try:
            made = made()
        except TypeError as error:
            raise InvalidArgument(
                f"laws takes a combiner, or a function without arguments that makes one: {error}"
            ) from None
    if not hasattr(made, "capability"):
        raise InvalidArgument(f"{text} is a {type(made).__name__}, and laws are those of combiners")
    return made


def _check(arguments: argparse.Namespace) -> int:
    from ..flows.flow import Flow
    from ..sparkops.checkpoints import check_restart

    flow = object_at(arguments.flow, "check", "mine:totals")
    if callable(flow) and not isinstance(flow, Flow):
        flow = flow()
    if not isinstance(flow, Flow):
        raise InvalidArgument(
            f"{arguments.flow} is a {type(flow).__name__}, and check takes a flow or a function of one"
        )
    restart = check_restart(flow, arguments.checkpoint, arguments.same)
    if arguments.json:
        steps = [
            {"stage": one.number, "step": one.words, "refused": [c.text for c in one.changes], "free": list(one.free)}
            for one in restart.steps
        ]
        print(json.dumps({"goes_on": restart.refusal is None, "steps": steps, "unknown": list(restart.unknown)}))
    else:
        lines = [line for one in restart.steps for line in one.lines()]
        lines += [f"not noted in the checkpoint, and taken for unchanged: {part}" for part in restart.unknown]
        print("\n".join(lines) or f"{arguments.checkpoint} has no state: the query starts from nothing")
        if restart.refusal is not None:
            print(f"\n{restart.refusal}")
    return 0 if restart.refusal is None else FAILED


def _checkpoint(arguments: argparse.Namespace) -> int:
    from ..sparkops.checkpoints import read_checkpoint

    checkpoint = read_checkpoint(arguments.path)
    if arguments.json:
        stages = [{**asdict(one), "watermark": one.shown_watermark} for one in checkpoint.stages]
        print(json.dumps({"path": checkpoint.path, "last_batch": checkpoint.last_batch, "stages": stages}))
        return 0
    print(f"{checkpoint.path}: last batch {checkpoint.last_batch}")
    for one in checkpoint.stages:
        print(f"\nstage {one.stage}: {one.shards} shards, {one.state_bytes:,} bytes, watermark {one.shown_watermark}")
        facts: Mapping[str, Any] = {**one.made_by, "watermark strategy": ", ".join(one.strategies)}
        lines = [[f"rows in {name}", f"{count:,}"] for name, count in one.held.items()]
        lines += [[name, str(value)] for name, value in facts.items() if name not in ("stage", "shards")]
        print(TablePreview(rows=lines, numbers=[False, False]).text())
    return 0


def _completion(arguments: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise LibraryMissing(
            "completion needs the library shtab, which is not installed: pip install 'uncombine[completion]'"
        ) from None
    print(shtab.complete(parser_of(), arguments.shell))
    return 0


__all__ = ["main", "parser_of"]


def __dir__() -> list[str]:
    return __all__


if __name__ == "__main__":
    raise SystemExit(main())
