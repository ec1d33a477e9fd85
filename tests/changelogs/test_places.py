"""Messages in files of text that cannot be read: each is told with its file, its line and its reason."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.files import text_files
from uncombine.flows import changelog_reading

ROW = pa.schema({"id": pa.int64(), "amount": pa.decimal128(10, 2), "at": pa.timestamp("us", "UTC")})

FAULTS = {
    "amount": "member '(payload.)?after.amount' is no decimal128(10, 2): '12,x'",
    "op": "Debezium's op must be one of c, r, u, d, but is 'x' in a row",
    "cut": "it is no JSON: Unterminated string",
    "bare": "a message of Debezium has no op",
}


def message(number: int, wrapped: bool) -> dict[str, Any]:
    after = {"id": number, "amount": "1.50", "at": "2024-05-01T12:00:00Z"}
    one = {"before": None, "after": after, "op": "c", "source": {"lsn": number}}
    return {"schema": None, "payload": one} if wrapped else one


def damaged(text: str, fault: str) -> str:
    match fault:
        case "amount":
            return text.replace("1.50", "12,x")
        case "op":
            return text.replace('"op": "c"', '"op": "x"')
        case "cut":
            return text[: text.index("amount") + 3]
    return text.replace('"op": "c", ', "")


def written(folder: Path, seed: int) -> dict[tuple[str, int], str]:
    """Files of messages, some with their envelope in `payload`; the faults by file and line."""
    draw, faults, number = random.Random(seed), dict[tuple[str, int], str](), 0
    for file in range(4):
        lines = []
        for line in range(1, draw.randint(2, 60)):
            number += 1
            text = json.dumps(message(number, wrapped=file % 2 == 1))
            if draw.random() < 0.1 and len(faults) < 40:
                fault = draw.choice(list(FAULTS))
                faults[f"{folder}/{file}.json", line] = fault
                text = damaged(text, fault)
            lines.append(text + draw.choice(["\n", "\r\n"]))
        (folder / f"{file}.json").write_text("".join(lines))
    return faults


def flow_of(folder: Path, **options: Any) -> uc.Flow:
    files = uc.Files(str(folder), format="text", **options)
    changes = uc.changelog.Debezium(keys="id", order="source.lsn", schema=ROW)
    return uc.flow(files, time="at", changelog=changes).window("global", "each row").combine(n=uc.Count())


@pytest.mark.parametrize("seed", range(5))
def test_each_is_told_with_its_line(
    seed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "BLOCK", 700)
    monkeypatch.setattr(changelog_reading, "MOST_TOLD", 10**9)
    faults = written(tmp_path, seed)
    result = flow_of(tmp_path, on_bad_row="leave_out").run()
    assert result.counts()["bad"] == len(faults) > 0
    told = [re.search(r"line (\d+) of (\S+): (.*)", record.getMessage()) for record in caplog.records]
    assert {(found[2], int(found[1])) for found in told if found} == set(faults)
    for found in filter(None, told):
        words = re.escape(FAULTS[faults[found[2], int(found[1])]]).replace(r"\(payload\.\)\?", r"(payload\.)?")
        assert re.search(words, found[3]), found[0]


def test_the_first_is_an_error_where_nobody_would_see_the_count(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(message(1, False)) + "\n[1]\n")
    words = rf"line 2 of {tmp_path}/a.json: .* it is no object of JSON.*on_bad_row='leave_out'"
    with pytest.raises(InvalidArgument, match=words):
        flow_of(tmp_path).run()


def test_lines_without_a_changelog_have_their_text_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    rows = uc.flow(uc.Files(str(tmp_path), format="text"), time=uc.col("value").str.len().cast_time("s"))
    assert rows.schema.names == ["value", "event_time"]
    assert rows.to_pandas()["value"].to_list() == ["one", "two"]
