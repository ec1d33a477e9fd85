"""A registry of schemas, as Confluent's, Redpanda's, Karapace's and Apicurio's compatible servers are.

A schema of a number never changes, so each process asks for it once. A number that the registry does not know is asked
for again after a while, because a message may be read before its schema has reached every server.

Guarded by tests/messages/test_registry.py.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from ..errors import InvalidArgument, NamedOptions, RegistryUnreachable
from ..urls import shown_url
from ..windows.spans import span

UNKNOWN_FOR = 30.0
"""The seconds for which a number is taken to have no schema, when the registry said so."""

_KNOWN: dict[Any, Schema] = {}
_UNKNOWN: dict[Any, float] = {}
_LOCK = threading.RLock()


@dataclass(frozen=True)
class Schema:
    """A schema of a registry."""

    kind: str
    """AVRO, PROTOBUF or JSON."""
    text: str
    references: tuple[tuple[str, Schema], ...] = ()
    """The schemas that it names, by the names that it has for them."""
    number: int = 0

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """The names and the texts of all schemas that it needs, each after those that it needs itself."""
        out: dict[str, str] = {}
        for name, schema in self.references:
            out |= dict(schema.texts)
            out.setdefault(name, schema.text)
        return tuple(out.items())


@dataclass(frozen=True)
class SchemaRegistry(NamedOptions):
    """A registry of schemas, from which messages of Avro, Protobuf and JSON Schema are read.

    Credentials are those given, or those in the environment of the process that makes this value:
    `SCHEMA_REGISTRY_USER` with `SCHEMA_REGISTRY_PASSWORD`, or `SCHEMA_REGISTRY_TOKEN`. They go with it to the workers
    of Spark, and no message shows them.

    Parameters
    ----------
    url
        The address, or several with commas between them, of which the first one that answers counts.
    user, password
        Credentials of HTTP's basic authentication; of Confluent Cloud, the key and the secret.
    token
        A bearer token instead.
    ca
        The path of a file with certificates of authorities, on every machine that reads, where the registry has one
        that is not public.
    wait
        The length of time in which a registry that does not answer is asked again.

    Examples
    --------
    >>> import uncombine as uc
    >>> uc.SchemaRegistry("https://registry.example:8081", user="me", password="secret")
    SchemaRegistry('https://registry.example:8081')
    """

    url: str
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca: str | None = None
    wait: str = "30 seconds"

    def __post_init__(self) -> None:
        if not isinstance(self.url, str) or not all(_is_http(url) for url in self.url.split(",")):
            raise InvalidArgument("SchemaRegistry(url) takes an address such as 'http://localhost:8081'")
        if span(self.wait) < 0:
            raise InvalidArgument(f"wait= of SchemaRegistry is {self.wait!r}, and it cannot be negative")
        if self.token is not None and self.user is not None:
            raise InvalidArgument("SchemaRegistry takes user= and password=, or token=, and not both")
        if (self.user is None) != (self.password is None):
            raise InvalidArgument("SchemaRegistry takes user= and password= together")
        if self.token is None and self.user is None:
            for name in ("user", "password", "token"):
                object.__setattr__(self, name, os.environ.get(f"SCHEMA_REGISTRY_{name.upper()}"))
            if self.token is not None or self.password is None:
                object.__setattr__(self, "user", None)

    def __repr__(self) -> str:
        options = "".join(
            f", {name}={value!r}" for name, value in (("ca", self.ca), ("wait", self.wait)) if value != _PLAIN[name]
        )
        return f"SchemaRegistry({self.shown!r}{options})"

    @property
    def shown(self) -> str:
        """The address as messages show it."""
        return ",".join(shown_url(url.strip()) for url in self.url.split(","))

    def schema(self, number: int) -> Schema | None:
        """The schema of a number; None if the registry has none."""
        key = (self, number)
        with _LOCK:
            if key in _KNOWN:
                return _KNOWN[key]
            if time.monotonic() - _UNKNOWN.get(key, -UNKNOWN_FOR) < UNKNOWN_FOR:
                return None
            answer = self._get(f"/schemas/ids/{number}")
            if answer is None:
                _UNKNOWN[key] = time.monotonic()
                return None
            _KNOWN[key] = self._schema(answer, number)
            return _KNOWN[key]

    def latest(self, subject: str) -> Schema:
        """The newest schema of a subject, as it is now."""
        answer = self._get(f"/subjects/{quote(subject, safe='')}/versions/latest")
        if answer is None:
            raise InvalidArgument(
                f"the schema registry {self.shown} has no subject {subject!r}: give schema=, or the name with subject="
            )
        return self._schema(answer, answer.get("id", 0))

    def _schema(self, answer: dict[str, Any], number: int) -> Schema:
        references = tuple(
            (one["name"], self._version(one["subject"], one["version"])) for one in answer.get("references") or ()
        )
        return Schema(answer.get("schemaType") or "AVRO", str(answer.get("schema", "")), references, number)

    def _version(self, subject: str, version: int) -> Schema:
        key = (self, subject, version)
        if key not in _KNOWN:
            answer = self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}")
            if answer is None:
                raise RegistryUnreachable(
                    f"the schema registry {self.shown} lacks version {version} of subject {subject!r}, to which "
                    "another schema refers"
                )
            _KNOWN[key] = self._schema(answer, answer.get("id", 0))
        return _KNOWN[key]

    def _get(self, path: str) -> dict[str, Any] | None:
        """The answer to a question; None if the thing is not there. Asks again where the registry does not answer."""
        until, pause = time.monotonic() + int(span(self.wait)) / 1_000_000, 0.1
        while True:
            for url in self.url.split(","):
                try:
                    return self._ask(url.strip(), path)
                except (OSError, HTTPException, ValueError) as error:
                    reason = error
                    if not _may_pass(error):
                        raise self._unreachable(error) from None
            if time.monotonic() + pause > until:
                raise self._unreachable(reason) from None
            time.sleep(pause)
            pause = min(2 * pause, 5.0)

    def _ask(self, url: str, path: str) -> dict[str, Any] | None:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        address = urlunsplit((parts.scheme, host, parts.path.rstrip("/") + path, "", ""))
        request = urllib.request.Request(address, headers={"Accept": "application/vnd.schemaregistry.v1+json"})
        user, password = self.user, self.password
        if user is None and parts.username is not None:
            user, password = unquote(parts.username), unquote(parts.password or "")
        if self.token is not None:
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        elif user is not None:
            both = base64.b64encode(f"{user}:{password}".encode()).decode()
            request.add_unredirected_header("Authorization", f"Basic {both}")
        context = ssl.create_default_context(cafile=self.ca) if parts.scheme == "https" else None
        opener = urllib.request.build_opener(*([urllib.request.HTTPSHandler(context=context)] if context else []))
        try:
            with opener.open(request, timeout=10) as reply:
                answer = json.loads(reply.read())
        except urllib.error.HTTPError as error:
            if error.code == 404 and _says_missing(error):
                return None
            raise
        if not isinstance(answer, dict) or "schema" not in answer:
            raise _NoRegistry("its answer has no schema")
        return answer

    def _unreachable(self, error: Exception) -> RegistryUnreachable:
        if isinstance(error, urllib.error.HTTPError):
            if error.code in (401, 403):
                return RegistryUnreachable(
                    f"the schema registry {self.shown} does not let this process in (HTTP {error.code}): check user= "
                    "and password=, or token="
                )
            reason = f"HTTP {error.code}"
        else:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        return RegistryUnreachable(
            f"the schema registry {self.shown} does not answer as one ({reason}): check the address and the network"
        )


class _NoRegistry(ValueError):
    """An answer that no registry gives."""


_PLAIN = {"ca": None, "wait": "30 seconds"}


def _is_http(url: str) -> bool:
    parts = urlsplit(url.strip())
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _may_pass(error: Exception) -> bool:
    """True for an error that another attempt may not have."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code in (408, 429) or error.code >= 500
    if isinstance(error, _NoRegistry) or isinstance(getattr(error, "reason", None), ssl.SSLCertVerificationError):
        return False
    return isinstance(error, OSError | HTTPException)


def _says_missing(error: urllib.error.HTTPError) -> bool:
    """True if a registry says that it has no such thing, and not another server that it has no such page."""
    try:
        return str(json.loads(error.read())["error_code"]).startswith("404")
    except (ValueError, TypeError, LookupError, OSError):
        return False


__all__ = ["Schema", "SchemaRegistry"]
