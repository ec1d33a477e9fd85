"""A server with as much of S3 as reading takes: the files of a folder, whose folders are buckets."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class Bucket(BaseHTTPRequestHandler):
    """Answers for one object, for a part of one, and for the objects of a prefix."""

    protocol_version = "HTTP/1.1"
    root: Path

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        path, options = self.root / unquote(asked.path).lstrip("/"), parse_qs(asked.query)
        if "list-type" in options:
            self._listed(path, options.get("prefix", [""])[0])
        elif not path.is_file():
            self._answer(404)
        else:
            self._object(path)

    do_HEAD = do_GET

    def _object(self, path: Path) -> None:
        data, about = path.read_bytes(), {"Last-Modified": formatdate(path.stat().st_mtime, usegmt=True)}
        if part := self.headers.get("Range"):
            first, _, end = part.removeprefix("bytes=").partition("-")
            stop = min(int(end or len(data)) + 1, len(data))
            about["Content-Range"] = f"bytes {first}-{stop - 1}/{len(data)}"
            self._answer(206, data[int(first) : stop], about)
        else:
            self._answer(200, data, about)

    def _listed(self, bucket: Path, prefix: str) -> None:
        keys = sorted(str(path.relative_to(bucket)) for path in bucket.rglob("*") if path.is_file())
        entries = [_entry(key, bucket / key) for key in keys if key.startswith(prefix)]
        whole = f"<IsTruncated>false</IsTruncated><KeyCount>{len(entries)}</KeyCount>{''.join(entries)}"
        self._answer(200, f"<ListBucketResult>{whole}</ListBucketResult>".encode(), {"Content-Type": "application/xml"})

    def _answer(self, status: int, body: bytes = b"", about: Mapping[str, str] = {}) -> None:
        self.send_response(status)
        for name, value in {**about, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def _entry(key: str, path: Path) -> str:
    stat = path.stat()
    changed = datetime.fromtimestamp(stat.st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    about = f"<LastModified>{changed}</LastModified><Size>{stat.st_size}</Size>"
    return f"<Contents><Key>{escape(key)}</Key>{about}</Contents>"


@contextmanager
def s3(root: Path) -> Iterator[dict[str, str]]:
    """A server over the buckets of a folder, and the environment in which Arrow finds it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Here", (Bucket,), {"root": root}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
    finally:
        server.shutdown()
        server.server_close()
