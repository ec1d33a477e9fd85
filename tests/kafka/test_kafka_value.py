"""The value that names topics: what it takes, what it refuses in a sentence, and what it never shows."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import BrokerUnreachable, InvalidArgument, TypeMismatch
from uncombine.kafka.client import Cluster

NOWHERE = "127.0.0.1:1"
SECRET = {
    "sasl.password": "hunter22",
    "sasl.username": "ada-of-test",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
}


def test_a_repr_has_the_options_that_are_given_and_no_secret() -> None:
    row = pa.schema({"n": pa.int64()})
    kafka = uc.Kafka(["a:1", "b:2"], ["t", "u"], value=row, key="string", start="latest", options=SECRET)
    assert repr(kafka).startswith("Kafka('a:1,b:2', ['t', 'u'], value=Json('n'), key=Text")
    assert "hunter22" not in repr(kafka) + repr(kafka.cluster) + repr(vars(kafka))
    assert pickle.loads(pickle.dumps(kafka)).cluster == kafka.cluster


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"start": "soon"}, InvalidArgument, "start= takes 'earliest', 'latest', 'group', a time, or offsets"),
        ({"start": {"t": 5}}, InvalidArgument, "start= names partitions as"),
        ({"start": {"t/0": -1}}, TypeMismatch, "whole numbers from 0 on, and not -1"),
        ({"start": "group"}, InvalidArgument, "name it with group="),
        ({"end": "earliest"}, InvalidArgument, "end= takes 'latest', a time"),
        ({"columns": ["ofset"]}, InvalidArgument, "did you mean 'offset'"),
        ({"value": "jason"}, InvalidArgument, "value= knows no format 'jason'"),
        ({"value": 5}, TypeMismatch, "value= takes 'string'"),
        ({"on_lost": "skip"}, InvalidArgument, "on_lost= must be 'error' or 'count', but is 'skip'"),
        ({"on_bad_row": "skip"}, InvalidArgument, "on_bad_row= must be 'error' or 'leave_out', but is 'skip'"),
        ({"max_rows_per_batch": 0}, InvalidArgument, "max_rows_per_batch= must be a whole number of at least 1"),
        ({"min_partitions": 1.5}, InvalidArgument, "min_partitions= must be a whole number"),
        ({"idle_after": "0 s"}, InvalidArgument, "idle_after= must be more than no time"),
        ({"options": {"group.id": "x"}}, InvalidArgument, "cannot set 'group.id': give group="),
        ({"options": {"bootstrap.servers": "x"}}, InvalidArgument, "give them as servers, the first argument"),
        ({"options": {"oauth_cb": print}}, TypeMismatch, "'oauth_cb' is a builtin"),
        ({"topic": []}, TypeMismatch, "a text or a list of texts as topic"),
        ({"valu": "string"}, InvalidArgument, "has no option 'valu': did you mean 'value'"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(options: dict[str, Any], kind: type[Exception], words: str) -> None:
    given = {"servers": NOWHERE, "topic": "t", "value": "string", **options}
    with pytest.raises(kind, match=words):
        uc.Kafka(**given)


def test_columns_of_one_name_are_refused() -> None:
    from uncombine.kafka.rows import MessageRows

    with pytest.raises(InvalidArgument, match="gives column 'offset' twice"):
        MessageRows(uc.messages.Text("offset"), None, ("offset",))


def test_servers_that_do_not_answer_are_named_and_secrets_are_not() -> None:
    with pytest.raises(BrokerUnreachable, match=r"no broker of 127\.0\.0\.1:1 answers, to list its topics") as error:
        uc.flow(uc.Kafka(NOWHERE, "t", value="string", wait="1 second", options=SECRET))
    assert "hunter22" not in str(error.value)
    assert "ada-of-test" not in str(error.value)


def test_an_option_that_the_client_refuses_is_named_without_its_value() -> None:
    options = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "ssl.ca.location": "/no"}
    cluster = Cluster(NOWHERE, options)
    with pytest.raises(InvalidArgument, match="does not take options=") as error:
        _ = cluster.admin
    assert "/no" not in str(error.value)
    with pytest.raises(InvalidArgument, match="No such configuration property"):
        _ = Cluster(NOWHERE, {"ssl.no.such": "x"}).admin


def test_a_history_and_a_table_take_no_options_of_streams() -> None:
    with pytest.raises(InvalidArgument, match="end= is for a bounded flow"):
        uc.Kafka(NOWHERE, "t", value="string", end="2024-05-01").check_streaming()
