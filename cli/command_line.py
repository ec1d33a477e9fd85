"""The command `uncombine`: its parts, each in a module of its own, and its exit codes.

It ends with 0 if all is well, 1 if a check or a run failed or two sides differ, and 2 if it was used wrongly, which one
line on stderr says. A user who ends it with Ctrl-C gets what there is, and 130.

Guarded by tests/cli/test_command_line.py.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from .. import UncombineError, __version__
from ..errors import InvalidArgument, LawViolation
from .checkpoints import add_check, add_checkpoint, add_why
from .comparisons import add_compare
from .failures import Failed
from .laws import add_laws
from .parser import Parser, add_completion
from .replay import add_replay
from .results import INTERRUPTED
from .rolling_rows import add_rolling
from .run import add_run

FAILED, WRONG = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the result is its exit code.

    >>> from uncombine.cli.command_line import main
    >>> main(["replay", "no.parquet", "--window", "fixed 1 minute", "--combine", "n=count"])
    2
    """
    parser = parser_of()
    try:
        namespace = parser.read(sys.argv[1:] if arguments is None else arguments)
        if namespace.command is None:
            parser.print_help()
            return WRONG
        with _warnings_in_a_line():
            code = int(namespace.run(namespace))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; the interpreter must not write the rest as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except LawViolation as error:
        print(f"uncombine: {error}", file=sys.stderr)
        return FAILED
    except (UncombineError, OSError, ImportError, pa.ArrowException) as error:
        print(f"uncombine: {' '.join(str(error).split())}", file=sys.stderr)
        return FAILED if isinstance(error, Failed) else WRONG
    except KeyboardInterrupt:
        return INTERRUPTED


def parser_of() -> Parser:
    """The options of the command and of its parts."""
    parser = Parser("uncombine", description="Aggregations with windows, triggers and retractions.")
    parser.add_argument("--version", action="version", version=f"uncombine {__version__}")
    demo = parser.command("demo", _demo, "show retractions, run them on Spark, and draw panes into out/")
    demo.add_argument("part", nargs="?", choices=["kafka"], help="kafka: a live table over a topic that is behind")
    demo.add_argument("--servers", help="for kafka: a broker, host:port; without it one is started (Java, mvn)")
    for add in (
        add_run,
        add_replay,
        add_rolling,
        add_compare,
        add_laws,
        add_check,
        add_checkpoint,
        add_why,
        add_completion,
    ):
        add(parser)
    return parser


def _demo(arguments: argparse.Namespace) -> int:
    if arguments.part == "kafka":
        from .demo_kafka import main as kafka

        kafka(arguments.servers)
        return 0
    if arguments.servers is not None:
        raise InvalidArgument("--servers is for uncombine demo kafka: write kafka before it, or leave it out")
    from .demo import main

    main()
    return 0


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Show a warning as the errors are shown, without the line of the library that gives it."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: print(f"uncombine: warning: {message}", file=sys.stderr)
        yield


__all__ = ["main", "parser_of"]


def __dir__() -> list[str]:
    return __all__


if __name__ == "__main__":
    raise SystemExit(main())
