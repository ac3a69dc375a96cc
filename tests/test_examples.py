"""Test that each file in ``examples/`` runs offline, prints results, is short, and is linked."""

import ast
import contextlib
import io
import runpy
from pathlib import Path

import pytest

from .source_tree import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PRINTED = {
    "judge_from_another_library": ["one scorer: correctness 1.0", "debate: correctness 0.0"],
    "judge_in_a_graph": ["draft 1 has", "draft 2 has", "accepted: The mill burned in 1911"],
    "judge_in_ten_lines": ["score: ", "explanation: ", "winner: 1"],
    "own_protocol": ["scorer_1 5.0", "scorer_3 5.0", "score: 5.0 after 3 calls"],
    "protocol_over_a_dataset": [
        "debate: rho 0.",
        "single: rho 0.",
        "108 items, 1.0 calls per item",
    ],
}
"""Parts of the output of each example, in order."""


SLOW = {"protocol_over_a_dataset"}
RUNS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])
    for path in EXAMPLES
]


def test_each_example_has_its_expected_output_here() -> None:
    if not (ROOT / "examples").is_dir():
        pytest.skip("examples/ is not beside tests/")
    assert [path.stem for path in EXAMPLES] == sorted(PRINTED)


@pytest.mark.parametrize("example", RUNS)
def test_an_example_runs_offline(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(example), run_name="__main__")
    position = 0
    for part in PRINTED[example.stem]:
        position = printed.getvalue().find(part, position)
        assert position >= 0, (
            f"{part!r} is not in the output, or not in this order:\n{printed.getvalue()}"
        )
    assert list(tmp_path.iterdir()) == [], "an example leaves files behind"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_how_to_run_it(example: Path) -> None:
    source = example.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(source)) or ""
    assert len(source.splitlines()) < 60
    assert f"python examples/{example.name}" in docstring
    assert "It prints" in docstring


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_a_page_links_to_every_example(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [path.name for path in EXAMPLES if f"examples/{path.name})" not in text] == []
