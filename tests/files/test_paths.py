"""Paths in object stores: their parameters, what is no secret, and the faults of a store that are none of its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from s3_server import Store, s3

import uncombine as uc
from uncombine.errors import InvalidArgument, StoreUnreachable, UnreadableFile
from uncombine.files import paths
from uncombine.files.data_paths import DataPath, access_of, data_paths
from uncombine.files.file_format import unreadable
from uncombine.files.listing import list_data_files
from uncombine.files.paths import absolute, without_parameters


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    for name in ("a.csv", "b.csv", "c?region=.csv"):
        (tmp_path / "bucket" / "in").mkdir(parents=True, exist_ok=True)
        (tmp_path / "bucket" / "in" / name).write_text("ts,v\n2016-01-20T12:00:00Z,1\n")
    with s3(tmp_path) as store:
        yield store


@pytest.mark.parametrize(
    ("path", "plain", "parameters"),
    [
        ("s3a://b/in?region=x", "s3://b/in", "region=x"),
        (
            "s3://b/?endpoint_override=http://127.0.0.1:9000&scheme=http",
            "s3://b",
            "endpoint_override=http://127.0.0.1:9000&scheme=http",
        ),
        ("s3://b?region=x", "s3://b", "region=x"),
        ("s3://b/2016-0?/k=1/*.csv", "s3://b/2016-0?/k=1/*.csv", ""),
        ("gs://anonymous@b/in?project_id=p", "gs://anonymous@b/in", "project_id=p"),
        ("/in/a?region=x", "/in/a?region=x", ""),
    ],
)
def test_parameters_end_a_path(path: str, plain: str, parameters: str) -> None:
    bare, found = without_parameters(path)
    assert (absolute(bare), found) == (plain, parameters)


def test_a_path_with_parameters_is_shown_without_them(store: Store) -> None:
    for text, words in [
        ("s3://bucket/in", "s3://bucket/in"),
        ("s3://bucket/in/?.csv", "s3://bucket/in/?.csv (a pattern)"),
    ]:
        (place,) = data_paths(text + store.parameters)
        assert place.words == words
        assert [file.path for file in list_data_files([place])][:2] == ["s3://bucket/in/a.csv", "s3://bucket/in/b.csv"]


def test_paths_of_one_bucket_have_the_same_parameters() -> None:
    places = [DataPath("", "s3://b/x", (), "region=x"), DataPath("", "s3://c/x", (), "region=y"), DataPath("", "/in")]
    assert access_of(places) == {"s3://b": "region=x", "s3://c": "region=y"}
    with pytest.raises(InvalidArgument, match="paths in s3://b have different parameters, 'region=x' and ''"):
        access_of([*places, DataPath("", "s3://b/y")])


@pytest.mark.parametrize(
    "path",
    [
        "s3://key:geheim@b/in",
        "s3://key:ge/heim@b/in",
        "abfs://c@a.dfs.core.windows.net/in?client_id=i&client_secret=geheim",
        "abfs://:geheim@a/c",
        "s3://b/in?session_token=geheim",
        "gs://b/in/x.csv?key=geheim",
        "gs://b/in/?.csv?region=x&key=geheim",
        "abfs://c@a.dfs.core.windows.net/in?account_key=ge/heim",
        "s3://b/in?endpoint_override=http://me:geheim@host:9000&scheme=http",
    ],
)
def test_a_path_has_no_secret(path: str) -> None:
    for make in (uc.Files, DataPath.of, lambda path: uc.Files("/in", order="name", start=[path])):
        with pytest.raises(InvalidArgument, match="has no password, key or token in it: give the cred") as told:
            make(path)
        assert "heim" not in str(told.value)


def test_the_remedy_names_the_variables_of_the_store() -> None:
    for path, variable in {
        "gs": "GOOGLE_APPLICATION_CREDENTIALS",
        "abfss": "AZURE_CLIENT_SECRET",
        "s3": "AWS_",
    }.items():
        with pytest.raises(InvalidArgument, match=f"in the environment, as .*{variable}"):
            uc.Files(f"{path}://b/in?key=geheim")


@pytest.mark.parametrize("path", ["s3://b/2016-0?/token=1/*.csv", "abfs://b/x?credential_kind=cli", "/in/a?key=1"])
def test_what_is_no_secret_is_taken(path: str) -> None:
    assert uc.Files(path).path == [path]


def test_a_store_that_refuses_is_no_file_to_be_skipped(store: Store) -> None:
    flow = uc.flow(uc.Files(f"s3://bucket/in/*.csv{store.parameters}", on_bad_file="skip"))
    total = flow.window("global").combine(n=uc.Count())
    assert total.run()["n"].to_pylist() == [3]
    store.refused = {"bucket/in/b.csv/"}
    with pytest.raises(StoreUnreachable, match=r"s3://bucket/in/b.csv cannot be reached: .*ACCESS_DENIED.*: check the"):
        total.run()


def test_parameters_that_arrow_does_not_have() -> None:
    says = "s3://b cannot be reached: Unexpected query parameter in S3 URI: 'secrets': check the address"
    with pytest.raises(StoreUnreachable, match=says):
        uc.flow("s3://b/in?region=x&secrets=1")


BOX = "abfs://box@account.dfs.core.windows.net/in"


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without credentials of Azure."""
    for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", ["a.csv", "*.csv", "", "*/b.csv"])
def test_azure_without_credentials_is_one_sentence(nobody: None, name: str) -> None:
    says = (
        r"^abfs://box@acc\S+ cannot be reached: Check .*: check the address, and .*AZURE_CLIENT_SECRET.* which Spark's"
    )
    with pytest.raises(StoreUnreachable, match=says) as told:
        uc.flow(f"{BOX}/{name}?credential_kind=environment")
    assert not [part for part in ("\n", "N5Azure", "Unknown error") if part in str(told.value)]


def test_azure_that_lets_nobody_in_is_no_file_to_be_skipped(nobody: None) -> None:
    with pytest.raises(StoreUnreachable, match="cannot be reached"):
        list_data_files(data_paths(f"{BOX}?credential_kind=environment"))
    error = pa.ArrowException("Unknown error: N5Azure4Core11Credentials23AuthenticationExceptionE: No token")
    with pytest.raises(StoreUnreachable, match=r"a\.csv cannot be reached: No token: check the address"):
        unreadable(f"{BOX}/a.csv", error)
    assert isinstance(unreadable(f"{BOX}/a.csv", pa.ArrowInvalid("CSV parse error: Azure4Core")), UnreadableFile)


def test_google_is_asked_for_a_few_seconds_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow asks for a quarter of an hour, also where there are no credentials."""
    asked: list[str] = []

    class Nowhere:
        @staticmethod
        def from_uri(uri: str) -> None:
            asked.append(uri)
            raise OSError(
                "google::cloud::Status(UNAVAILABLE: Retry policy exhausted, with a last message of No token. "
                "The request was not sent, as error_info={reason=})"
            )

    monkeypatch.setattr(paths, "pafs", SimpleNamespace(FileSystem=Nowhere))
    says = r"gs://box-1 cannot be reached: No token: check the address, and .*GOOGLE_APPLICATION_CREDENTIALS.* which"
    for name in ("*.csv", "a.csv"):
        with pytest.raises(StoreUnreachable, match=says):
            uc.flow(f"gs://box-1/in/{name}?project_id=p")
    with pytest.raises(StoreUnreachable, match="cannot be reached"):
        uc.flow("gs://box-1/in?retry_limit_seconds=60")
    with pytest.raises(StoreUnreachable, match="cannot be reached"):
        list_data_files(["gs://box-1/in"])
    assert asked == [
        "gs://box-1/?project_id=p&retry_limit_seconds=3",
        "gs://box-1/?project_id=p&retry_limit_seconds=3",
        "gs://box-1/?retry_limit_seconds=60",
        "gs://box-1/",
    ]
