"""Test the files for contributors: YAML parses, commands exist, the citation is current."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jurygraph
import pytest
import yaml

from .source_tree import ROOT, beside

FILES = sorted(
    [
        *ROOT.glob(".github/**/*.yml"),
        *ROOT.glob(".pre-commit-config.yaml"),
        *ROOT.glob("CITATION.cff"),
    ]
)
TARGETS = ["setup", "check", "test", "docs", "bench"]


def loaded(place: str) -> Any:
    return yaml.safe_load(beside(place).read_text(encoding="utf-8"))


def developers_tools() -> set[str]:
    """Return the packages that contributors install, unlike an environment for tests only."""
    extras = tomllib.loads(beside("pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    return {re.split(r"[\[<>=]", requirement)[0] for requirement in extras["dev"] + extras["docs"]}


def exists(command: str) -> bool:
    """Return whether a command line's program exists or is a contributor's tool."""
    words = [
        word
        for word in shlex.split(command)
        if "=" not in word.split("/")[0] or word.startswith("-")
    ]
    if "-m" in words[:3]:
        module = words[words.index("-m") + 1]
        # `python -m venv` puts pip into an environment; other tools may leave it out of theirs.
        top = "ensurepip" if module == "pip" else module.split(".")[0]
        if top in developers_tools():
            return True
        if (ROOT / top).is_dir():
            # Other tests may have put the project's root onto the import path, where
            # `find_spec` would answer for the folder alone.
            return (ROOT / f"{module.replace('.', '/')}.py").is_file()
        return find_spec(top) is not None
    if words[0] in developers_tools():
        return True
    tools = str(Path(sys.executable).parent)
    return (ROOT / words[0]).is_file() or shutil.which(Path(words[0]).name, path=tools) is not None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_yaml_file_parses(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


@pytest.mark.parametrize("target", TARGETS)
def test_the_commands_of_a_make_target_exist(target: str) -> None:
    beside("Makefile")
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    printed = subprocess.run(
        ["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    commands = printed.splitlines()
    assert commands
    assert [command for command in commands if not exists(command)] == []


def test_a_command_that_does_not_exist_is_noticed() -> None:
    assert not exists(".ci/chekc")
    assert not exists("X=1 .venv/bin/python -m benchmarks.profilling")
    assert exists("X=1 .venv/bin/python -m benchmarks.profiling")


def test_the_workflow_runs_the_checks_of_the_project_without_secrets() -> None:
    text = beside(".github/workflows/ci.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    commands = {
        name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()
    }
    assert commands == {"checks": [".ci/run"], "hosts": [".ci/hosts"]}
    assert "secrets." not in text
    assert all((ROOT / command).is_file() for [command] in commands.values())


def test_the_workflow_installs_every_supported_python() -> None:
    steps = loaded(".github/workflows/ci.yml")["jobs"]["checks"]["steps"]
    (versions,) = [
        step["with"]["python-version"] for step in steps if "setup-python" in step.get("uses", "")
    ]
    project = tomllib.loads(beside("pyproject.toml").read_text(encoding="utf-8"))["project"]
    supported = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert sorted(versions.split()) == sorted(supported)


def test_every_hook_is_local_and_its_program_exists() -> None:
    for repository in loaded(".pre-commit-config.yaml")["repos"]:
        assert repository["repo"] == "local"
        for hook in repository["hooks"]:
            assert hook["language"] == "system"
            assert exists(hook["entry"])


def test_the_citation_names_this_version_and_its_license() -> None:
    citation = loaded("CITATION.cff")
    project = tomllib.loads(beside("pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (citation["cff-version"], citation["version"]) == ("1.2.0", jurygraph.__version__)
    assert citation["license"] == project["license"]
    assert [
        reference["title"] for reference in citation["references"] if not reference["authors"]
    ] == []
