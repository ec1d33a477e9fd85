"""URLs in messages: without credentials, however they are written.

Guarded by tests/tables/test_tables_urls.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

_HOST = r"(?:[\w.~%*-]+|\[[0-9a-fA-F:.%]+\])"
_SERVERS = re.compile(rf"(?:{_HOST}(?::\d+)?(?:,{_HOST}(?::\d+)?)*)?")
_WORDS = r"passw|pwd|secret|token|credential(?!_kind)|signature|api[-_.]?key|access[-_.]?key"
_SECRET = re.compile(rf"[?&]((?:[^=&/]*(?:{_WORDS})[^=&/]*)|sig|sas|(?:[^=&/]*[-_.])?key)=([^&#]*)", re.IGNORECASE)


def shown_url(url: str) -> str:
    """A URL without user, password and parameters, for messages; a path as it is.

    >>> [shown_url(url) for url in ("s3://me:secret@bucket/a?token=t", "postgresql:///db?password=p", "/data/a@b")]
    ['s3://bucket/a', 'postgresql:///db', '/data/a@b']
    """
    scheme, mark, _ = url.partition("://")
    return f"{scheme}://{_parts(url)[1]}" if mark else url


def has_password(url: str) -> bool:
    """True if there is a password before the server of a URL.

    >>> has_password("s3://key:secret@bucket/t"), has_password("abfss://box@account.net/t")
    (True, False)
    """
    return bool(_parts(url)[0])


def secrets_of(url: str) -> list[str]:
    """The parts of a URL that no message may show, in the forms in which a library may repeat them.

    >>> secrets_of("postgresql://me:sec%20ret@host/db?sslpassword=key")
    ['sec%20ret', 'sec ret', '20ret', 'key', 'ret', 'sec']
    """
    raw = [_parts(url)[0], *(value for _, value in _SECRET.findall(url))]
    whole = [*raw, *map(unquote, raw)]
    parts = [part for text in whole for part in re.split(r"[@:/?#&%\s]+", text)]
    return sorted({text for text in (*whole, *parts) if len(text) > 1}, key=lambda text: (-len(text), text))


def without_secrets(text: str, secrets: Sequence[str]) -> str:
    """The text with stars in the place of secrets, in one line."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return " ".join(text.split())


def secrets_among(options: Mapping[str, object]) -> list[str]:
    """The values of options that no message may show, by the names of the options, and those within URLs.

    >>> secrets_among({"s3.secret-access-key": "abc", "uri": "http://me:pass@host", "type": "rest"})
    ['pass', 'abc']
    """
    out = [secret for value in options.values() if isinstance(value, str) for secret in secrets_of(value)]
    for name, value in options.items():
        if isinstance(value, str) and len(value) > 1 and re.search(_WORDS, name, re.IGNORECASE):
            out += [value, *filter(None, value.split(":"))]
    return sorted(set(out), key=lambda text: (-len(text), text))


def _parts(url: str) -> tuple[str, str]:
    """The password of a URL, and its servers and path as far as they are certain to be no part of a password.

    A password with / ? # or @ in it, which belongs into no URL as it is, is found too.
    """
    rest = url.partition("://")[2]
    before, at, after = rest.rpartition("@")
    first, in_path, _ = before.partition("/")
    hosts, in_query, named = before.partition("?")
    if at and in_path and ":" not in first and "?" not in first:  # the @ is in the path
        after, before = rest, ""
    elif at and in_query and "=" in named and _SERVERS.fullmatch(hosts.partition("/")[0]):  # in a parameter
        after, before = re.sub(r":\d+", "", rest.partition("?")[0]), ""
    servers, slash, path = re.split(r"[?#]", after, maxsplit=1)[0].partition("/")
    if not _SERVERS.fullmatch(servers):
        return f"{before.partition(':')[2]} {servers.partition(':')[2]}".strip(), "..."
    return before.partition(":")[2], f"{servers}{slash}{path}"


__all__ = ["has_password", "secrets_among", "secrets_of", "shown_url", "without_secrets"]
