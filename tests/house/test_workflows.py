"""Workflows, issue forms and hooks: they parse, and the targets, versions and tools that they name are there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))
HOOKS = ROOT / ".pre-commit-config.yaml"
PINNED = re.compile(r"actions/[\w-]+@v\d+")
ELEMENTS = {"markdown", "textarea", "input", "dropdown", "checkboxes"}


def read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def targets() -> set[str]:
    """The targets of the Makefile."""
    return set(re.findall(r"^([\w-]+)(?: [\w-]+)*:(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))


def spelled(text: str, matrix: dict[str, list[str]]) -> list[str]:
    """A text of a job with each value of its matrix in place of the name."""
    texts = [text]
    for name, values in matrix.items():
        texts = [one.replace(f"${{{{ matrix.{name} }}}}", value) for one in texts for value in values]
    return sorted(set(texts))


def wrong_steps(job: dict[str, Any], known: set[str]) -> list[str]:
    """The steps of a job that cannot run: neither an action nor a command, an action of others, an unknown target."""
    matrix = job.get("strategy", {}).get("matrix", {})
    wrong = []
    for step in job["steps"]:
        if ("uses" in step) == ("run" in step):
            wrong.append(str(step))
        elif "uses" in step and not PINNED.fullmatch(step["uses"]):
            wrong.append(step["uses"])
        for command in spelled(step.get("run", ""), matrix):
            named = re.match(r"make ([\w-]+)", command)
            if "matrix." in command or (named and named[1] not in known):
                wrong.append(command)
    return wrong


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_workflows_run_what_is_there(file: Path) -> None:
    workflow = read(file)
    # YAML reads the key `on` as true.
    assert set(workflow) <= {"name", True, "permissions", "concurrency", "jobs"}
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert {"runs-on", "timeout-minutes", "steps"} <= set(job), name
        assert wrong_steps(job, targets()) == []


def test_steps_that_cannot_run_are_seen() -> None:
    job = {
        "strategy": {"matrix": {"target": ["soak", "rest"]}},
        "steps": [{"uses": "someone/tool@main"}, {"run": "make ${{ matrix.target }}"}, {"name": "nothing"}],
    }
    assert wrong_steps(job, {"soak"}) == ["someone/tool@main", "make rest", "{'name': 'nothing'}"]


def test_the_suite_runs_on_every_python_that_is_promised() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    jobs = read(GITHUB / "workflows" / "tests.yml")["jobs"]
    assert jobs["suite"]["strategy"]["matrix"]["python"] == promised
    assert jobs["versions"]["strategy"]["matrix"]["versions"] == ["lowest", "newest"]


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.name)
def test_issue_forms_have_parts_with_names(file: Path) -> None:
    form = read(file)
    assert {"name", "description", "body"} <= set(form)
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert {part["type"] for part in form["body"]} <= ELEMENTS
    assert len({part["id"] for part in asked}) == len(asked) > 0
    assert all(part["attributes"]["label"] for part in asked)
    assert any(part.get("validations", {}).get("required") for part in asked)


def test_hooks_are_the_tools_of_the_project() -> None:
    [repository] = read(HOOKS)["repos"]
    assert repository["repo"] == "local"
    commands = [hook["entry"] for hook in repository["hooks"]]
    assert [command.split()[0] for command in commands] == [".venv/bin/ruff", ".venv/bin/ruff", ".venv/bin/mypy"]
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}


@pytest.mark.parametrize("file", [*GITHUB.rglob("*.*"), HOOKS], ids=lambda file: file.name)
def test_no_address_is_named(file: Path) -> None:
    """The project has no address yet, and its tools none of a package registry."""
    assert re.findall(r"\w+://\S+|\b\w+\.(?:org|com|io|dev)\b", file.read_text(encoding="utf-8")) == []
