"""A registry of schemas: numbers, subjects, credentials, and a registry that is away."""

from __future__ import annotations

import pickle
import socket
import time
from collections.abc import Iterator

import pytest
from registry_server import Registry, registry_server

import uncombine as uc
from uncombine.errors import InvalidArgument, RegistryUnreachable
from uncombine.messages import registry as module
from uncombine.messages.subjects import subject_schema


@pytest.fixture
def served() -> Iterator[Registry]:
    with registry_server() as served:
        yield served


def test_a_schema_is_asked_for_once(served: Registry) -> None:
    number = served.register("orders-value", "long")
    registry = uc.SchemaRegistry(served.address)
    found = [registry.schema(number) for _ in range(3)]
    assert found[0] is not None
    assert (found[0].kind, found[0].text, found[0].number) == ("AVRO", "long", number)
    assert found == found[:1] * 3
    assert pickle.loads(pickle.dumps(registry)).schema(number) == found[0]
    assert served.asked == [f"/schemas/ids/{number}"]


def test_an_unknown_number_is_asked_for_again_after_a_while(served: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = uc.SchemaRegistry(served.address)
    assert [registry.schema(1), registry.schema(1)] == [None, None]
    assert len(served.asked) == 1
    served.register("late-value", "int")
    assert registry.schema(1) is None
    monkeypatch.setattr(module, "UNKNOWN_FOR", 0.0)
    assert registry.schema(1) is not None


def test_the_newest_schema_of_a_subject_with_those_that_it_names(served: Registry) -> None:
    served.register("price", {"type": "fixed", "name": "price", "size": 4})
    served.register("a/b-value", "int")
    served.register("a/b-value", "price", references=[{"name": "price", "subject": "price", "version": 1}])
    found = subject_schema(uc.SchemaRegistry(served.address), None, "a/b", "value", "AVRO", "Avro")
    assert found.text == "price"
    assert [name for name, _ in found.texts] == ["price"]
    with pytest.raises(InvalidArgument, match="has no subject 'none-key': give schema="):
        subject_schema(uc.SchemaRegistry(served.address), None, "none", "key", "AVRO", "Avro")
    with pytest.raises(InvalidArgument, match="has a schema of AVRO, and Protobuf"):
        subject_schema(uc.SchemaRegistry(served.address), "price", None, "value", "PROTOBUF", "Protobuf")
    with pytest.raises(InvalidArgument, match="has no columns without a topic"):
        subject_schema(uc.SchemaRegistry(served.address), None, None, "value", "AVRO", "Avro")


def test_credentials_are_sent_and_never_shown(served: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    number = served.register("s", "int")
    served.require("me", "sec:ret")
    for registry in (
        uc.SchemaRegistry(served.address, user="me", password="sec:ret"),
        uc.SchemaRegistry(served.address.replace("://", "://me:sec%3Aret@")),
    ):
        assert registry.schema(number) is not None
        assert "ret" not in repr(registry).replace("SchemaRegistry", "")
    refused = uc.SchemaRegistry(served.address, user="me", password="wrong-one")
    with pytest.raises(RegistryUnreachable, match=r"does not let this process in .HTTP 401.: check user=") as told:
        refused.schema(number)
    assert "wrong-one" not in str(told.value)
    monkeypatch.setenv("SCHEMA_REGISTRY_USER", "me")
    monkeypatch.setenv("SCHEMA_REGISTRY_PASSWORD", "sec:ret")
    from_environment = uc.SchemaRegistry(served.address)
    assert from_environment.schema(number) is not None
    monkeypatch.delenv("SCHEMA_REGISTRY_PASSWORD")
    assert pickle.loads(pickle.dumps(from_environment)) == from_environment
    monkeypatch.setenv("SCHEMA_REGISTRY_TOKEN", "abc")
    served.authorization = "Bearer abc"
    served.register("t", "long")
    assert uc.SchemaRegistry(served.address).schema(number + 1) is not None


def test_a_registry_that_answers_after_a_while(served: Registry) -> None:
    number = served.register("s", "int")
    served.failures += [503, 429, 500]
    assert uc.SchemaRegistry(served.address).schema(number) is not None
    assert len(served.asked) == 4


def test_the_second_address_answers(served: Registry) -> None:
    number = served.register("s", "int")
    assert uc.SchemaRegistry(f"http://127.0.0.1:{unused()}, {served.address}").schema(number) is not None


def unused() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_a_registry_that_is_away() -> None:
    registry = uc.SchemaRegistry(f"http://me:secret@127.0.0.1:{unused()}", wait="1 second")
    began = time.monotonic()
    with pytest.raises(RegistryUnreachable, match=r"does not answer as one .*refused.*: check the address") as told:
        registry.schema(1)
    assert time.monotonic() - began < 5
    assert "secret" not in str(told.value)


def test_a_server_that_is_no_registry(served: Registry) -> None:
    served.failures += [404, 200, 301]
    for _ in range(2):
        with pytest.raises(RegistryUnreachable, match="does not answer as one"):
            uc.SchemaRegistry(served.address).schema(1)
    with pytest.raises(RegistryUnreachable, match="does not answer as one"):
        uc.SchemaRegistry(served.address, wait="0 seconds").schema(1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"url": "localhost:8081"}, "takes an address such as"),
        ({"url": "http://a", "user": "me"}, "together"),
        ({"url": "http://a", "user": "me", "password": "p", "token": "t"}, "not both"),
        ({"url": "http://a", "wait": "-1 second"}, "cannot be negative"),
    ],
)
def test_options_that_are_refused(arguments: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        uc.SchemaRegistry(**arguments)
