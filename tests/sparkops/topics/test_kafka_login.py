"""Topics of servers that need a password: they are read, and the password is shown nowhere."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kafka_broker import PASSWORD, SecuredBroker, why_not
from pyspark.sql import SparkSession
from streams import changed

import uncombine as uc
from uncombine.errors import UncombineError

ROW = pa.schema({"ts": pa.timestamp("ms", "UTC"), "k": pa.string(), "n": pa.int64()})
NOON = 1_714_564_800_000
# In base64 a text has one of three forms, by its place.
FORMS = [PASSWORD.encode(), *(base64.b64encode(b"?" * i + PASSWORD.encode())[4:-4] for i in range(3))]


@pytest.fixture(scope="module")
def secured(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    assert why_not() is None
    server = SecuredBroker(tmp_path_factory.mktemp("secured"))
    server.start()
    yield server
    server.stop()


def shown(text: str | bytes) -> bool:
    data = text.encode() if isinstance(text, str) else text
    return any(form in data for form in FORMS)


def test_a_login_reads_and_its_password_is_shown_nowhere(
    secured: SecuredBroker, spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    topic = secured.topic(2)
    for partition in range(2):
        secured.send(topic, [{"ts": NOON, "k": "a", "n": n} for n in range(5)], partition)
    kafka = uc.Kafka(secured.servers, topic, value=ROW, options=secured.login)
    assert uc.flow(kafka).run()["n"].to_pylist() == [*range(5), *range(5)]
    flow = uc.flow(kafka, spark=spark, streaming=True, watermark="0 seconds")
    counted = flow.window("1 hour", "every 1 row", mode="retracting").combine(by="k", total=uc.Sum("n"))
    texts = [repr(kafka), str(kafka), repr(flow), flow.explain(), counted.explain(), repr(counted)]
    bounded = uc.flow(kafka, spark=spark)
    for df in (bounded.df, bounded.combine(by="k", total=uc.Sum("n")).df, counted.df):
        plan: Any = df
        texts.append(plan._jdf.queryExecution().toString())
        df.explain(mode="extended")
    with changed(spark):
        writer = counted.write_stream(checkpoint=str(tmp_path / "checkpoint")).format("parquet")
        query = writer.option("path", str(tmp_path / "out")).trigger(availableNow=True).start()
        query.awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert sum(row["total"] * row["diff"] for row in rows.to_pylist()) == 20
    texts += [str(one) for one in query.recentProgress]
    texts += [repr(uc.progress(query)), str(uc.checkpoint(tmp_path / "checkpoint"))]
    java: Any = query
    texts.append(java._jsq.explainInternal(True))
    printed = capfd.readouterr()
    texts += [printed.out, printed.err]
    assert all(text is not None for text in texts)
    assert [text for text in texts if shown(text)] == []
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if shown(path.read_bytes())] == []


def test_a_wrong_password_is_one_sentence_without_it(secured: SecuredBroker, spark: SparkSession) -> None:
    topic = secured.topic()
    wrong = {**secured.login, "sasl.username": "nobody"}
    for options in ({}, {"spark": spark}):
        with pytest.raises(UncombineError) as found:
            uc.flow(uc.Kafka(secured.servers, topic, value=ROW, options=wrong), **options)
        assert not shown("".join(traceback.format_exception(found.value)))
        assert "\n" not in str(found.value)
