"""The demo of Kafka: the table before and after the messages of the partition that is behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from uncombine.cli import kafka_broker
from uncombine.cli.command_line import main


def test_the_demo_shows_the_table_before_and_after_its_correction(
    broker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "kafka", "--servers", broker.servers]) == 0
    before, after = capsys.readouterr().out.split("Partition 1 was three hours behind")
    assert [line.split() for line in before.splitlines() if "12:00" in line] == [["12:00", "DE", "2", "80"]]
    assert [line.split() for line in after.splitlines() if "12:00" in line] == [
        ["12:00", "DE", "1", "30"],
        ["12:00", "FR", "1", "25"],
    ]
    assert "no time yet" in before
    assert "no time yet" not in after
    assert [name for name in broker.admin.list_topics(timeout=30).topics if name.startswith("uncombine-demo")] == []


def test_without_maven_the_demo_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    there = {"java": "/usr/bin/java"}
    monkeypatch.setattr(kafka_broker.shutil, "which", there.get)
    assert main(["demo", "kafka"]) == 2
    assert "there is no mvn: install it, or name a broker with --servers" in capsys.readouterr().err
    there.clear()
    assert main(["demo", "kafka"]) == 2
    assert "install Java 17 or newer" in capsys.readouterr().err
    assert main(["demo", "--servers", "here:1"]) == 2
    assert "--servers is for uncombine demo kafka" in capsys.readouterr().err
