"""Processes of Python that Spark starts, forked off one that has imported what all of them need.

A streaming query starts a process on the driver, and tasks start workers. Imports are nearly all that a short one does,
with 1 to 2 seconds of a processor each. It is for the shared session and for programs with many workers; other
programs start what users start.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

STREAMS = [0, 1, 2]
NEEDED = ("pandas", "pyarrow.parquet", "pyspark.worker", "uncombine.sparkops.routes")
"""The modules that processes need. Without one of them they only start more slowly."""


@contextmanager
def warm_python(folder: Path) -> Iterator[Path]:
    """The program for `PYSPARK_PYTHON`, which Spark starts with `-m MODULE ARGUMENTS`, while the process it asks runs.

    It is Python itself elsewhere than on Linux: there a fork of what has imported pandas may not run.
    """
    if sys.platform != "linux":
        yield Path(sys.executable)
        return
    program, address = folder / "python", folder / "socket"
    words = [sys.executable, "-IS", __file__, str(address)]
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    program.chmod(0o755)
    # One hash seed, which Spark too sets for workers. A fork would leave threads of OpenBLAS and of Arrow behind.
    no_threads = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
    settings = {"PYTHONHASHSEED": "0"} | no_threads
    listener = socket.socket(socket.AF_UNIX)
    with listener:
        listener.bind(str(address))
        listener.listen(64)
        process = subprocess.Popen(
            [sys.executable, "-u", __file__],
            stdin=subprocess.PIPE,
            env=os.environ | settings | {"LISTENER": str(listener.fileno())},
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
    assert process.stdin is not None
    try:
        yield program
    finally:
        process.stdin.close()
        process.wait()


def serve(listener: socket.socket) -> None:
    """Fork a process for each that asks, until the standard input ends: the one that started this has ended then."""
    for name in NEEDED:
        with suppress(ImportError):
            import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while sys.stdin not in select.select([sys.stdin, listener], [], [])[0]:
        asked, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            run(asked)
        asked.close()


def run(asked: socket.socket) -> NoReturn:
    """Run a module as the process that asks would, with its streams, environment and folder."""
    import runpy
    import traceback

    _, streams, *_ = socket.recv_fds(asked, 1, len(STREAMS))
    for given, stream in zip(streams, STREAMS, strict=True):
        os.dup2(given, stream)
        os.close(given)
    with asked.makefile("rb") as file:
        wanted: dict[str, Any] = json.load(file)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    os.chdir(wanted["folder"])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[0] = wanted["folder"]
    sys.path += [path for path in paths if path and path not in sys.path]
    option, module, *arguments = wanted["arguments"]
    assert option == "-m"
    sys.argv = [option, *arguments]
    code = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    asked.sendall(bytes([code & 255]))
    os._exit(code)


def ask(address: str, arguments: list[str]) -> int:
    """Have a module run with the streams of this process; its exit code."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(address)
        socket.send_fds(asked, [b" "], STREAMS)
        wanted = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}
        asked.sendall(json.dumps(wanted).encode())
        asked.shutdown(socket.SHUT_WR)
        code = asked.recv(1)
    return code[0] if code else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(ask(sys.argv[1], sys.argv[2:]))
    serve(socket.socket(fileno=int(os.environ.pop("LISTENER"))))
