"""The planted faults: what is changed, that a copy is changed and not the tree, and that a test that fails is told."""

from __future__ import annotations

import ast
from pathlib import Path

import mutate
import pytest

pytestmark = pytest.mark.full

SOURCE = '''
def fits(count: int = 3, *, name: str = "é") -> bool:
    """No more than 3."""
    if not name and count < 5:
        raise ValueError(1 + 1)
    rows.append(name)
    return count + 1 == 4 if name else min(count, 2) is None
'''


def test_each_kind_of_change() -> None:
    found = {f"{one.line} {one.old} -> {one.new}" for one in mutate.mutations("a.py", SOURCE)}
    assert found == {
        "2 3 -> 4",
        "4 not name and count < 5 -> not (not name and count < 5)",
        "4 not name -> (name)",
        "4 and -> or",
        "4 < -> <=",
        "4 5 -> 6",
        "6 rows.append(name) -> pass",
        "7 count + 1 == 4 if name else min(count, 2) is None -> min(count, 2) is None if name else count + 1 == 4",
        "7 == -> !=",
        "7 + -> -",
        "7 1 -> 2",
        "7 4 -> 5",
        "7 min -> max",
        "7 2 -> 3",
        "7 is -> is not",
    }


def test_a_run_has_so_many_of_each_room_and_each_is_a_program() -> None:
    chosen = mutate.planted()
    assert len(chosen) == mutate.COUNT
    for room in mutate.ROOMS:
        assert sum(one.file.startswith(f"{room}/") for one in chosen) == mutate.COUNT // len(mutate.ROOMS)
    assert chosen == mutate.planted()
    for one in chosen:
        before = (mutate.ROOT / one.file).read_text()
        assert ast.dump(ast.parse(one.applied(before))) != ast.dump(ast.parse(before)), str(one)


def test_a_mutation_is_planted_in_a_copy_and_found_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutate, "WIDE", ())
    monkeypatch.setattr(mutate, "stages", lambda mutation, spark: [("not soak", ["tests/windows/test_spans.py"])])
    folder, file = mutate.copied(tmp_path), "windows/spans.py"
    text = (mutate.ROOT / file).read_text()
    [one] = [one for one in mutate.mutations(file, text) if one.old == "length <= 0"]
    found = mutate.outcome(one, folder, spark=False)
    assert found is not None
    assert found.startswith("tests/windows/test_spans.py::")
    same = mutate.Mutation(file, one.line, one.start, one.end, one.old, "0 >= length")
    assert mutate.outcome(same, folder, spark=False) is None
    assert (mutate.ROOT / file).read_text() == text == (folder / file).read_text()
