"""The notebooks run from top to bottom, keep what they promise, and are stored with what they say and show.

``python -m tests.test_notebooks`` in the project's folder runs them and stores their outputs anew.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from .processes import HANG_GUARD

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
KERNEL = "this-python"
UNTYPED: Any = nbformat
COLOR = re.compile(r"\x1b\[[\d;]*m")


def read(path: Path) -> NotebookNode:
    notebook = UNTYPED.reads(path.read_text(encoding="utf-8"), as_version=4)
    assert isinstance(notebook, NotebookNode)
    return notebook


def executed(path: Path, folder: Path) -> NotebookNode:
    """The notebook after a run in a folder of its own, by the interpreter that runs the tests."""
    spec = folder / "jupyter" / "kernels" / KERNEL
    spec.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    about = {"argv": command, "display_name": KERNEL, "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(about), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder / "jupyter"))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(folder / "runtime"))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        for key in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
            patch.delenv(key, raising=False)
        notebook = read(path)
        resources = {"metadata": {"path": str(folder)}}
        client = NotebookClient(
            notebook, timeout=int(HANG_GUARD), kernel_name=KERNEL, resources=resources, record_timing=False
        )
        client.execute()
    # The name of the kernel and the version of Python are this machine's.
    notebook.metadata = read(path).metadata
    return notebook


def said(notebook: NotebookNode, cell_id: str) -> str:
    """What a cell printed or displayed, as text."""
    (cell,) = (cell for cell in notebook.cells if cell.id == cell_id)
    parts = [output.get("text") or _shown(output.get("data", {})) for output in cell.outputs]
    return re.sub(r"\s+", " ", COLOR.sub("", " ".join(parts)))


def words(cell: NotebookNode) -> list[str]:
    """What a cell says, and of what kind its pictures are."""
    said = [output.get("text") or str(sorted(output.get("data", {}))) for output in cell.outputs]
    return [COLOR.sub("", text) for text in said]


def _shown(data: dict[str, Any]) -> str:
    return str(data.get("image/svg+xml") or data.get("text/plain", ""))


@pytest.fixture(scope="module")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], NotebookNode]:
    @cache
    def run(path: Path) -> NotebookNode:
        return executed(path, tmp_path_factory.mktemp(path.stem))

    return run


@pytest.fixture
def quickstart(run_once: Callable[[Path], NotebookNode]) -> NotebookNode:
    return run_once(FOLDER / "quickstart.ipynb")


def test_there_are_notebooks() -> None:
    assert FOLDER / "quickstart.ipynb" in NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_stored_is_whole_and_small(path: Path) -> None:
    notebook = read(path)
    UNTYPED.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert path.stat().st_size < 400_000


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_from_top_to_bottom(path: Path, run_once: Callable[[Path], NotebookNode]) -> None:
    code = [cell for cell in run_once(path).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert [output.text for cell in code for output in cell.outputs if output.get("name") == "stderr"] == []
    stored = {cell.id: words(cell) for cell in read(path).cells if cell.cell_type == "code"}
    # Pictures differ from version to version of what draws them.
    assert {cell.id: words(cell) for cell in code} == stored


@pytest.mark.slow
def test_every_cell_of_the_quickstart_has_something_to_show(quickstart: NotebookNode) -> None:
    code = [cell for cell in quickstart.cells if cell.cell_type == "code"]
    assert [cell.id for cell in code if not said(quickstart, cell.id)] == []


@pytest.mark.slow
def test_a_verdict_and_who_gave_it(quickstart: NotebookNode) -> None:
    assert re.search(r"score [1-5](\.\d+)? of 5; ended by \w+ after \d", said(quickstart, "verdict"))
    assert "The offline judge is no language model" in said(quickstart, "verdict")
    assert "winner: answer 1" in said(quickstart, "compare")


@pytest.mark.slow
def test_the_debate_is_read_aloud(quickstart: NotebookNode) -> None:
    debate = said(quickstart, "aloud")
    assert "round 0 · scorer" in debate
    assert "round 1 · critic" in debate
    assert debate.index("round 0 · scorer") < debate.index("round 1 · critic")


@pytest.mark.slow
def test_the_graph_is_drawn(quickstart: NotebookNode) -> None:
    drawing = said(quickstart, "drawing")
    assert "<svg" in drawing
    assert [node for node in ("commander", "scorer", "critic", "tie_breaker") if node not in drawing] == []


@pytest.mark.slow
def test_personas_are_compared(quickstart: NotebookNode) -> None:
    rows = said(quickstart, "personas")
    assert re.findall("strict|moderate|weak|plain|sophisticated", rows) == [
        *("strict", "moderate", "weak", "plain", "sophisticated")
    ]
    assert len(re.findall("no_issue|max_rounds", rows)) == 5


@pytest.mark.slow
def test_who_decides_where_they_do_not_agree(quickstart: NotebookNode) -> None:
    assert re.search(r"tie_breaker gives [1-5]", said(quickstart, "tie"))
    assert re.search(r"(?s)do not agree.*Scores so far: \[[1-5]", said(quickstart, "human"))
    assert "score 2, decided by: human" in said(quickstart, "resumed")


@pytest.mark.slow
def test_a_batch_and_its_agreement(quickstart: NotebookNode) -> None:
    batch = said(quickstart, "batch")
    assert re.search(r"12 judged, 0 failed, \d\d+ calls", batch)
    assert re.search(r"Spearman's rho with the synthetic labels: -?[01]\.\d\d, of 12 items", batch)


@pytest.mark.slow
def test_where_a_real_model_goes(quickstart: NotebookNode) -> None:
    assert "Set OPENAI_API_KEY and GOOGLE_API_KEY" in said(quickstart, "models")


@pytest.mark.slow
def test_the_judge_inside_a_bigger_graph(quickstart: NotebookNode) -> None:
    pipeline = said(quickstart, "pipeline")
    assert re.search(r"not good enough: .* opened in 1923 .*published: .* opened in 1932", pipeline)


@pytest.fixture
def trust(run_once: Callable[[Path], NotebookNode]) -> NotebookNode:
    return run_once(FOLDER / "trust.ipynb")


@pytest.mark.slow
def test_agreement_comes_with_its_interval(trust: NotebookNode) -> None:
    assert len(re.findall(r"rho 0\.\d\d, 95 % interval -?0\.\d\d to 0\.\d\d", said(trust, "agreement"))) == 3


@pytest.mark.slow
def test_judges_are_compared_fairly(trust: NotebookNode) -> None:
    assert re.search(r"debate vs\. single: [+-]0\.\d\d, p = [01]\.\d\d", said(trust, "fair"))
    assert re.search(r"debate vs\. ensemble, [2-9] of 9, which costs no more", said(trust, "fair"))


@pytest.mark.slow
def test_what_debates_did_and_what_rounds_are_worth(trust: NotebookNode) -> None:
    assert re.search(r"\d+ of 54 scores changed", said(trust, "debate"))
    assert len(re.findall(r"round \d: rho", said(trust, "debate"))) == 5
    made, alone = map(int, re.findall(r"(\d+) calls made; .* take (\d+)", said(trust, "sweep"))[0])
    assert made < alone / 2


@pytest.mark.slow
def test_a_replay_calls_nobody(trust: NotebookNode) -> None:
    assert said(trust, "replay").startswith("0 calls,")


@pytest.mark.slow
def test_the_tour_shows_every_protocol_and_draws(run_once: Callable[[Path], NotebookNode]) -> None:
    tour = run_once(FOLDER / "protocols.ipynb")
    told = said(tour, "rate") + said(tour, "compare")
    names = [
        "single",
        "debate",
        "multiagent",
        "chateval",
        "ensemble",
        "geval",
        "baseline",
        "faireval",
        "more",
        "samre",
        "calibrated",
    ]
    assert [name for name in names if name not in told] == []
    assert "summarizer" in said(tour, "chateval")
    assert "juror" in said(tour, "samre")


@pytest.mark.slow
def test_a_text_is_refined(run_once: Callable[[Path], NotebookNode]) -> None:
    refinement = run_once(FOLDER / "refinement.ipynb")
    assert re.search(r"told: The score is .*good_enough -> .*opened in 1932", said(refinement, "refined"))
    assert re.search(r"\[\d(\.\d)?\] The Varnow footbridge", said(refinement, "inside"))


@pytest.mark.slow
def test_a_split_panel_asks_a_person(run_once: Callable[[Path], NotebookNode]) -> None:
    panel = run_once(FOLDER / "mixed-panel.ipynb")
    assert "split" in said(panel, "pause")
    assert "winner: 1, decided by human: It says how long." in said(panel, "decide")


if __name__ == "__main__":
    for notebook in NOTEBOOKS:
        with TemporaryDirectory() as folder:
            notebook.write_text(UNTYPED.writes(executed(notebook, Path(folder))) + "\n", encoding="utf-8")
