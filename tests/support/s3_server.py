"""A server with as much of S3 as reading takes: the files of a folder, whose folders are buckets."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


@dataclass
class Store:
    """The address of a server, and the bytes of objects that it has sent."""

    address: str
    refused: set[str] = field(default_factory=set)
    """The beginnings of paths for which nobody has the right."""
    unlisted: bool = False
    """True if nobody has the right to list a bucket."""
    sent: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    """The numbers of requests: HEAD, GET, and LIST."""

    @property
    def parameters(self) -> str:
        """The end of a path that Arrow finds here."""
        return f"?region=us-east-1&endpoint_override={self.address}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which Arrow finds it."""
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


class Bucket(BaseHTTPRequestHandler):
    """Answers for a bucket, for one object, for a part of one, and for the objects of a prefix."""

    protocol_version = "HTTP/1.1"
    root: Path
    store: Store

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        name = unquote(asked.path).strip("/")
        path, options = self.root / name, parse_qs(asked.query)
        listing = "list-type" in options
        self.store.requests["LIST" if listing else self.command] += 1
        if any(f"{name}/".startswith(one) for one in self.store.refused) or (listing and self.store.unlisted):
            self._answer(403)
        elif listing and path.is_dir():
            self._listed(path, options.get("prefix", [""])[0], options.get("delimiter", [""])[0])
        elif path.is_file():
            self._object(path)
        else:
            self._answer(200 if path.is_dir() and "/" not in name else 404)

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
        self.store.sent += stop - int(first) if part else len(data) * (self.command != "HEAD")

    def _listed(self, bucket: Path, prefix: str, delimiter: str) -> None:
        keys = sorted(str(path.relative_to(bucket)) for path in bucket.rglob("*") if path.is_file())
        keys = [key for key in keys if key.startswith(prefix)]
        below = [key for key in keys if delimiter and delimiter in key[len(prefix) :]]
        folders = sorted({prefix + key[len(prefix) :].partition(delimiter)[0] + delimiter for key in below})
        entries = [_entry(key, bucket / key) for key in keys if key not in below]
        entries += [f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in folders]
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
def s3(root: Path) -> Iterator[Store]:
    """A server over the buckets of a folder."""
    answers = type("Here", (Bucket,), {"root": root})
    server = ThreadingHTTPServer(("127.0.0.1", 0), answers)
    answers.store = store = Store(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
