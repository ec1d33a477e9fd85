"""Errors of a user's own code in one sentence, with the line that raised them."""

from __future__ import annotations

import json

import pytest

import uncombine as uc
from uncombine.cli.failures import Failed, failures_of


def own_function() -> None:
    json.loads("{")


def test_the_line_is_the_last_one_of_the_user() -> None:
    line = own_function.__code__.co_firstlineno + 1
    with pytest.raises(Failed) as failed, failures_of("mine:totals"):
        own_function()
    assert str(failed.value).startswith(
        f'mine:totals failed at test_failures.py:{line} (json.loads("{{")): JSONDecodeError: Expecting property name'
    )
    assert isinstance(failed.value.__cause__, ValueError)


def test_an_error_of_the_library_has_its_own_words() -> None:
    with pytest.raises(Failed, match="'1 minut' is not a window") as failed, failures_of("mine:totals"):
        raise uc.errors.InvalidArgument("'1 minut' is not a window")
    assert "mine" not in str(failed.value)


def test_an_error_without_words_has_its_name() -> None:
    with pytest.raises(Failed, match=r"RuntimeError$"), failures_of("mine:totals"):
        raise RuntimeError


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            "[JVM] failed\n  File 'a.py'\nValueError: no such luck\n\n\tat org.apache.spark.X",
            "ValueError: no such luck",
        ),
        ("[JVM] failed\nuncombine.errors.OutOfRange: too far\n\tat X\nKeyError: 'x'", "OutOfRange: too far"),
        ("[JVM] failed\n\tat org.apache.spark.X", "[JVM] failed"),
    ],
)
def test_an_error_of_spark_has_the_words_of_python(words: str, reason: str) -> None:
    error = type("PythonException", (Exception,), {"__module__": "pyspark.errors.exceptions.captured"})
    with pytest.raises(Failed) as failed, failures_of("mine:totals"):
        raise error(words)
    assert str(failed.value) == f"mine:totals failed on Spark: {reason}"


def test_errors_of_some_classes_and_interrupts_pass() -> None:
    with pytest.raises(ImportError, match="no module"), failures_of("mine:totals", (ImportError,)):
        raise ImportError("no module")
    with pytest.raises(Failed, match="first"), failures_of("mine:totals"), failures_of("other"):
        raise Failed("first")
    with pytest.raises(KeyboardInterrupt), failures_of("mine:totals"):
        raise KeyboardInterrupt
