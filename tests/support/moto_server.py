"""A server of the whole of S3, also for writing, as a program of its own on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock


@contextmanager
def bucket(name: str = "bucket") -> Iterator[str]:
    """An empty bucket, which the environment of this process finds; the beginning of the paths in it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(f"{address}/moto-api/", server)
        urllib.request.urlopen(urllib.request.Request(f"{address}/{name}", method="PUT"))
        environment = {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ALLOW_HTTP": "true",
        }
        with mock.patch.dict(os.environ, environment):
            yield f"s3://{name}"
    finally:
        server.terminate()
        server.wait()


def _wait(address: str, server: subprocess.Popen[bytes], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < until:
        try:
            urllib.request.urlopen(address).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the server of S3 did not start")


__all__ = ["bucket"]
