"""Paths of data files: names as in Spark, and file systems of Arrow with their faults.

Guarded by tests/files/test_paths.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

import pyarrow as pa
import pyarrow.fs as pafs

from ..errors import InvalidArgument, StoreUnreachable
from ..urls import has_password, secrets_of

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://([^/]*))?(/.*|$)", re.DOTALL)

ARROW_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfs", "abfss": "abfss", "viewfs": "viewfs"}
"""Hadoop's names of file systems, and the names of Arrow for them."""

_WITHOUT_BUCKET = ("s3://", "gs://", "abfs://", "abfss://")

_PARAMETERS = (
    "region", "scheme", "endpoint_override", "force_virtual_addressing", "tls_ca_file_path", "tls_verify_certificates",
    "smart_defaults", "project_id", "retry_limit_seconds", "blob_storage_authority", "dfs_storage_authority",
    "blob_storage_scheme", "dfs_storage_scheme", "enable_tls", "credential_kind", "tenant_id", "client_id",
)  # fmt: skip
_ACCESS = re.compile(rf"\?((?:{'|'.join(_PARAMETERS)})=.*)$", re.DOTALL)
"""The parameters of a file system of Arrow, which end a path. Another question mark is a part of a pattern."""

NO_ACCESS: Mapping[str, str] = MappingProxyType({})
"""File systems without parameters of their own."""

STORE_FAULTS = (OSError, pa.ArrowException)
"""The errors of Arrow's file systems. That of Azure without credentials is no `OSError`."""

_OF_STORES = re.compile(
    r"AWS Error (?!INVALID_OBJECT_STATE|OBJECT_NOT_IN_ACTIVE_TIER)|google::cloud::Status|Azure Error|Azure4Core"
)
"""The words of Arrow for a store that does not answer or lets nobody in, whatever the file is."""

_INTERNAL = re.compile(
    r"^Unknown error: |\bN5Azure4Core\w+: | error_info=\{.*|\. The request was not sent, .*|PerformWork\(\) - |"
    r"google::cloud::Status\(\w+: (?:Retry policy exhausted, with a last message of )?"
)
"""The parts of Arrow's words that say nothing to a user."""

_VARIABLES = {"gs": "GOOGLE_APPLICATION_CREDENTIALS"} | dict.fromkeys(
    ("abfs", "abfss"), "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET"
)
"""The variables of the environment with credentials, by the scheme of a store."""

LOOK_SECONDS = 3
"""The time for which Google's store is asked again before anything starts; Arrow does so for a quarter of an hour."""


def parts_of(path: str) -> tuple[str, str]:
    """Split a path into the address of its file system ("" for the local one) and the path in it.

    Nothing is percent-decoded, since Spark's file sources use the names on disk.

    >>> from uncombine.files.paths import parts_of
    >>> parts_of("file:/tmp/a%20b.parquet"), parts_of("s3a://bucket/x.csv")
    (('', '/tmp/a%20b.parquet'), ('s3://bucket', '/x.csv'))
    """
    match = _SCHEME.fullmatch(path)
    if match is None:
        return "", path
    scheme, authority, rest = match.group(1).lower(), match.group(2) or "", match.group(3)
    if scheme == "file":
        return "", rest
    return f"{ARROW_SCHEMES.get(scheme, scheme)}://{authority}", rest


def without_parameters(path: str) -> tuple[str, str]:
    """A path of a user without the parameters of its file system, which end it, and these.

    >>> without_parameters("s3://bucket/in/*.csv?region=eu-west-1&scheme=http")
    ('s3://bucket/in/*.csv', 'region=eu-west-1&scheme=http')
    >>> without_parameters("s3://bucket/in/?.csv")
    ('s3://bucket/in/?.csv', '')
    """
    access = _ACCESS.search(path) if parts_of(path)[0] else None
    return (path, "") if access is None else (path[: access.start()], access.group(1))


def require_no_secret(paths: Iterable[str]) -> None:
    """Raise for a path with a password, a key or a token, which messages, plans and checkpoints would show."""
    for path in paths:
        address, values = parts_of(path)[0], path.split("=")[1:]
        if address and (secrets_of(path) or any(map(has_password, [path, *values]))):
            aws = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or as AWS_PROFILE"
            raise InvalidArgument(
                f"a path such as {path.partition(':')[0]}://bucket/folder has no password, key or token in it: give "
                f"the credentials in the environment, as {_VARIABLES.get(_scheme(address), aws)}"
            )


def absolute(path: str) -> str:
    """The path without a trailing slash; a local path becomes absolute."""
    address, inside = parts_of(path)
    return address + inside.rstrip("/") if address else os.path.abspath(inside)


def locate(path: str, access: Mapping[str, str] = NO_ACCESS) -> tuple[pafs.FileSystem, str]:
    """The Arrow file system of a path, and the path in the form of that file system.

    `access` has the parameters of some file systems by their addresses.
    """
    address, inside = parts_of(path)
    if not address:
        return _local(), inside
    system, root = _system(address, access.get(address, ""))
    return system, root + inside or "/"


def info_of(path: str, access: Mapping[str, str] = NO_ACCESS) -> pafs.FileInfo:
    """The kind of what is at a path, before anything starts; raise for a store that does not answer soon.

    >>> info_of("/no/such/file").type.name
    'NotFound'
    """
    address = parts_of(path)[0]
    parameters = access.get(address, "")
    if _scheme(address) == "gs" and "retry_limit_seconds=" not in parameters:
        access = {address: f"{parameters}&retry_limit_seconds={LOOK_SECONDS}".removeprefix("&")}
    system, inside = locate(path, access)
    try:
        return system.get_file_info(inside)
    except STORE_FAULTS as error:
        if not address:
            raise
        raise unreachable(path, error) from None


def _scheme(address: str) -> str:
    return address.partition(":")[0]


@lru_cache(maxsize=1)
def _local() -> pafs.FileSystem:
    return pafs.LocalFileSystem()


@lru_cache(maxsize=64)
def _system(address: str, parameters: str) -> tuple[pafs.FileSystem, str]:
    if address in _WITHOUT_BUCKET:
        raise InvalidArgument(
            f"{address} names no bucket (a path of pathlib has one slash in place of two): write it as a text, such as "
            f"'{address}bucket/folder'"
        )
    try:
        system, root = pafs.FileSystem.from_uri(f"{address}/?{parameters}" if parameters else f"{address}/")
    except (OSError, ValueError, NotImplementedError) as error:
        raise unreachable(address, error) from None
    return system, root.rstrip("/")


def unreachable(path: str, error: Exception) -> StoreUnreachable:
    """The error for a path whose file system does not answer, or lets nobody in."""
    reason = _INTERNAL.sub("", str(error).partition("\n")[0]).rstrip(". ")
    variables = _VARIABLES.get(_scheme(parts_of(path)[0]))
    settings = "the credentials and the region" if variables is None else f"the credentials ({variables})"
    return StoreUnreachable(
        f"{path} cannot be reached: {reason}: check the address, and {settings} in the environment, which Spark's "
        "workers need too"
    )


def is_of_store(path: str, error: Exception) -> bool:
    """True for an error that a file system has with any of its files.

    >>> is_of_store("s3://bucket/a.csv", OSError("AWS Error ACCESS_DENIED during HeadObject operation"))
    True
    >>> is_of_store("s3://bucket/a.csv", OSError("CSV parse error")), is_of_store("/a.csv", OSError("AWS Error"))
    (False, False)
    """
    of_system = isinstance(error, OSError) and not isinstance(error, FileNotFoundError)
    of_system |= type(error) is pa.ArrowException  # the others may have words of the file in theirs
    return bool(of_system and parts_of(path)[0] and _OF_STORES.search(str(error)))


def hidden(relative: str) -> bool:
    """True for a path that Spark ignores below the folder that is read: `_SUCCESS`, `.part.crc`, `_delta_log/x`."""
    return any(
        part.startswith(".") or (part.startswith("_") and "=" not in part) or part.endswith("._COPYING_")
        for part in relative.split("/")
    )


def paths_of(paths: Sequence[str] | str | os.PathLike[str]) -> list[str]:
    """The paths of a user as a list of texts, which is not empty."""
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not several or not all(isinstance(path, str | os.PathLike) and os.fspath(path) for path in several):
        raise InvalidArgument(f"files are named by a path or a list of paths, but the path is {paths!r}")
    return [os.fspath(path) for path in several]
