"""Test that the notebooks run, keep their promises, and are stored with their outputs.

``python -m tests.test_notebooks`` in the project's folder runs them and stores new outputs.
"""

import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from .processes import HANG_GUARD
from .source_tree import ROOT

FOLDER = ROOT / "notebooks"
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
    notebook = read(path)
    options: Any = {"kernel_name": KERNEL, "timeout": int(HANG_GUARD), "record_timing": False}
    with pytest.MonkeyPatch.context() as patch:
        for name, place in (("PATH", "jupyter"), ("RUNTIME_DIR", "runtime")):
            patch.setenv(f"JUPYTER_{name}", str(folder / place))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        for key in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
            patch.delenv(key, raising=False)
        NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}, **options).execute()
    # The name of the kernel and the version of Python are this machine's.
    notebook.metadata = read(path).metadata
    return notebook


def code_of(notebook: NotebookNode) -> list[NotebookNode]:
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    return code


def said(notebook: NotebookNode, cell_id: str) -> str:
    def shown(data: dict[str, Any]) -> str:
        return str(data.get("image/svg+xml") or data.get("text/plain", ""))

    (cell,) = (cell for cell in notebook.cells if cell.id == cell_id)
    parts = [output.get("text") or shown(output.get("data", {})) for output in cell.outputs]
    return re.sub(r"\s+", " ", COLOR.sub("", " ".join(parts)))


def words(cell: NotebookNode) -> str:
    """Return the text of a cell's output and the kinds of its pictures, joining split lines."""
    said = [output.get("text") or str(sorted(output.get("data", {}))) for output in cell.outputs]
    return COLOR.sub("", "".join(said))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_stored_is_whole_and_small(path: Path) -> None:
    notebook = read(path)
    UNTYPED.validate(notebook)
    code = code_of(notebook)
    assert path.stat().st_size < 400_000
    if path.stem == "quickstart":
        assert [cell.id for cell in code if not said(notebook, cell.id)] == []


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    code = code_of(executed(path, tmp_path))
    assert [
        output.text for cell in code for output in cell.outputs if output.get("name") == "stderr"
    ] == []
    # Pictures differ between versions of the drawing library.
    assert {cell.id: words(cell) for cell in code} == {
        cell.id: words(cell) for cell in code_of(read(path))
    }


# The stored output of a cell; the test above checks that a run prints the same.
PROMISED = [
    ("quickstart", "verdict", r"score [1-5](\.\d+)? of 5; ended by \w+ after \d"),
    ("quickstart", "verdict", "Demo mode: scores come from word counts"),
    ("quickstart", "compare", "winner: answer 1"),
    ("quickstart", "aloud", "Scripted replies, not those of a language model"),
    ("quickstart", "aloud", "round 0 · scorer · 4.*critic · objects.*scorer · 2.*critic · no issue"),
    ("quickstart", "drawing", "<svg(?=.*commander)(?=.*scorer)(?=.*critic)(?=.*tie_breaker)"),
    ("quickstart", "personas", "strict.*moderate.*weak.*plain.*sophisticated"),
    ("quickstart", "personas", "((no_issue|max_rounds).*){5}"),
    ("quickstart", "tie", "tie_breaker gives [1-5]"),
    ("quickstart", "human", r"do not agree.*Scores so far: \[[1-5]"),
    ("quickstart", "resumed", "score 2, decided by: human"),
    ("quickstart", "batch", r"12 judged, 0 failed, \d\d+ calls"),
    ("quickstart", "batch", r"Spearman's rho with the synthetic labels: -?[01]\.\d\d, of 12 items"),
    ("quickstart", "models", "Set OPENAI_API_KEY and GOOGLE_API_KEY"),
    ("quickstart", "pipeline", "not good enough: .* opened in 1923 .*published: .* opened in 1932"),
    ("trust", "agreement", r"(rho 0\.\d\d, 95 % interval -?0\.\d\d to 0\.\d\d.*){3}"),
    ("trust", "fair", r"debate vs\. single: [+-]0\.\d\d, p = [01]\.\d\d"),
    ("trust", "fair", "debate vs\\. ensemble, [2-9] of 9, which costs no more"),
    ("trust", "debate", r"\d+ of 54 scores changed"), ("trust", "debate", r"(round \d: rho.*){5}"),
    ("trust", "sweep", r"\d+ calls made; .* take \d+"), ("trust", "replay", "^0 calls,"),
    ("protocols", "chateval", "summarizer"), ("protocols", "samre", "juror"),
    ("refinement", "refined", "told: The score is .*good_enough -> .*opened in 1932"),
    ("refinement", "inside", r"\[\d(\.\d)?\] The Varnow footbridge"), ("mixed-panel", "pause", "split"),
    ("mixed-panel", "decide", "winner: 1, decided by human: It says how long"),
    ("papers", "fluency", "(score 1,.*score 2,.*score 5, stop reason no_issue)"),
    ("papers", "engaging", "score 2, stop reason no_issue.*score 3, stop reason no_issue"),
    ("papers", "stops", "score 3, stop reason max_rounds, 5 .*score 4, stop reason tie_breaker, 6"),
    ("papers", "declared", "no_issue, 4 calls.*no_issue, 2 calls"),
    ("papers", "chateval", "winner tie.*reads the third in its second turn: True"),
    ("papers", "rules", "faireval.*8.5:6.5, winner 1 │ 6 .*baseline.*winner 2 │ 1 .*more.*winner 1 │ 9 "),
    ("papers", "samre", "(stop reason agreement.*){2}stop reason max_rounds, 12 calls"),
    ("papers", "summary", "replace'} │ 2 │ no │ no │ yes.*append'} │ 2 │ no │ yes │ yes.*_last.*│ 3 "),
    ("papers", "table", "(should be.*){3}9.9 percent"), ("papers", "ablation", "tie_breaker"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "cell", "pattern"), PROMISED)
def test_a_cell_says_what_is_promised(name: str, cell: str, pattern: str) -> None:
    assert re.search(pattern, said(read(FOLDER / f"{name}.ipynb"), cell))


def test_the_tour_shows_every_protocol() -> None:
    tour = read(FOLDER / "protocols.ipynb")
    told = said(tour, "rate") + said(tour, "compare")
    names = (
        "single debate multiagent chateval ensemble geval baseline faireval more samre calibrated"
    )
    assert [name for name in names.split() if name not in told] == []


if __name__ == "__main__":
    for notebook in NOTEBOOKS:
        with TemporaryDirectory() as folder:
            notebook.write_text(
                UNTYPED.writes(executed(notebook, Path(folder))) + "\n", encoding="utf-8"
            )
