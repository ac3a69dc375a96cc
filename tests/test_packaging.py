"""Test that the wheel contains only the package, and ``python -m jurygraph`` runs it."""

import sys
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import jurygraph
import pytest

from .processes import ran
from .source_tree import ROOT, beside

CODE = ("state", "nodes", "graphs", "eval", "testing", "adapters")
OPTIONS = (
    "egg_info",
    "--egg-base",
    "{0}",
    "build",
    "--build-base",
    "{0}/build",
    "bdist_wheel",
    "--dist-dir",
    "{0}",
)
BUILD = "import setuptools, sys; sys.argv = ['setup.py', *sys.argv[1:]]; setuptools.setup()"


def test_only_the_two_files_of_the_package_are_at_the_root() -> None:
    """The root is the package, so setuptools would package any other Python file there."""
    beside("pyproject.toml")
    assert sorted(path.name for path in ROOT.glob("*.py")) == ["__init__.py", "__main__.py"]


def test_every_folder_with_code_is_listed_as_a_package() -> None:
    project = tomllib.loads(beside("pyproject.toml").read_text(encoding="utf-8"))
    listed = project["tool"]["setuptools"]["packages"]
    inits = [
        path.parent.relative_to(ROOT)
        for folder in CODE
        for path in (ROOT / folder).rglob("__init__.py")
    ]
    assert sorted(listed) == sorted(
        ["jurygraph", *(f"jurygraph.{'.'.join(path.parts)}" for path in inits)]
    )


def test_python_m_jurygraph_runs_the_command_line(tmp_path: Path) -> None:
    done = ran(sys.executable, "-m", "jurygraph", "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"jurygraph {jurygraph.__version__}\n",
        "",
    )


@pytest.mark.slow
def test_python_m_jurygraph_reports_a_wrong_command_with_exit_code_2(tmp_path: Path) -> None:
    done = ran(sys.executable, "-m", "jurygraph", "runn", cwd=tmp_path)
    assert done.returncode == 2
    assert "Usage: jurygraph" in done.stderr
    assert "runn" in done.stderr


@pytest.mark.slow
def test_the_wheel_contains_the_code_with_its_data_and_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    beside("pyproject.toml")
    options = [option.format(tmp_path) for option in OPTIONS]
    done = ran(sys.executable, "-c", BUILD, *options, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    inside = {
        PurePosixPath(name).relative_to("jurygraph")
        for name in names
        if name.startswith("jurygraph/")
    }
    assert {path.parts[0] for path in inside} == {"__init__.py", "__main__.py", "py.typed", *CODE}
    code = {
        PurePosixPath(path.relative_to(ROOT).as_posix())
        for folder in CODE
        for path in (ROOT / folder).rglob("*.py")
    }
    assert sorted(code - inside) == []
    outside = {PurePosixPath(name).parts[0] for name in names} - {"jurygraph"}
    assert outside == {f"jurygraph-{jurygraph.__version__}.dist-info"}
