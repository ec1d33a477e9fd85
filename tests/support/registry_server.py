"""A server with as much of a schema registry as reading takes, on loopback."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


@dataclass
class Registry:
    """The address of a server, its schemas, and the questions that it was asked."""

    address: str
    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    authorization: str | None = None
    """The header without which nobody is let in."""
    failures: list[int] = field(default_factory=list)
    """The statuses of the next answers."""

    def register(self, subject: str, schema: Any, kind: str = "AVRO", references: Any = ()) -> int:
        """The number of a schema, which is new."""
        number = len(self.schemas) + 1
        text = schema if isinstance(schema, str) else json.dumps(schema)
        self.schemas[number] = {"schema": text, "references": list(references)} | (
            {"schemaType": kind} if kind != "AVRO" else {}
        )
        self.subjects.setdefault(subject, []).append(number)
        return number

    def require(self, user: str, password: str) -> None:
        """Let nobody else in."""
        self.authorization = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        parts = [unquote(part) for part in path.split("/")[1:]]
        if parts[:2] == ["schemas", "ids"] and len(parts) == 3:
            found = self.schemas.get(int(parts[2]))
            return (200, found) if found else (404, {"error_code": 40403, "message": "Schema not found"})
        if parts[0] == "subjects" and parts[2:3] == ["versions"]:
            numbers = self.subjects.get(parts[1], [])
            if not numbers:
                return 404, {"error_code": 40401, "message": "Subject not found"}
            version = len(numbers) if parts[3] == "latest" else int(parts[3])
            number = numbers[version - 1]
            return 200, {"subject": parts[1], "version": version, "id": number, **self.schemas[number]}
        return 404, {}


def framed(number: int, message: bytes) -> bytes:
    """A message in Confluent's wire format."""
    return b"\x00" + number.to_bytes(4, "big") + message


@contextmanager
def registry_server() -> Iterator[Registry]:
    """A registry without schemas."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.asked.append(self.path)
            status, answer = registry.answer(self.path)
            if registry.authorization not in (None, self.headers.get("Authorization")):
                status, answer = 401, {"error_code": 40101, "message": "Unauthorized"}
            if registry.failures:
                status, answer = registry.failures.pop(0), {}
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry = Registry(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
