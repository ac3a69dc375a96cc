"""Test the package's data files: a wrong key or value is refused with file and line."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jurygraph.eval.datasets import catalog, reading
from jurygraph.eval.experiments import attacks, bias, errata, paper_tables, presets
from jurygraph.eval.run.replay import recording_sources
from jurygraph.nodes.offline import features
from jurygraph.nodes.replies import vocabulary
from jurygraph.state import aspects
from jurygraph.state.aspects import Aspect
from jurygraph.state.data_files import read_toml
from jurygraph.state.errors import DataError

from .source_tree import ROOT

Load = Callable[[Path, pytest.MonkeyPatch], Any]


def beside(module: ModuleType, load: Callable[[], Any]) -> Load:
    """Load a file next to its module from another folder; it is read once."""

    def from_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setattr(module, "__file__", str(path.with_name("module.py")))
        return getattr(load, "__wrapped__", load)()

    return from_folder


def hostile(load: Callable[[], Any]) -> Load:
    def from_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        attacks.numerals()  # templates refer to the numerals of the package
        monkeypatch.setattr(attacks, "_FOLDER", path.parent)
        return load.__wrapped__()  # type: ignore[attr-defined]

    return from_folder


def typed(kind: Any) -> Load:
    return lambda path, _: read_toml(path, kind)


def weights(path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(features, "_FILE", path)
    monkeypatch.setattr(features, "WORDS", read_toml(path, features._OfflineWords))
    return features._checked_weights.__wrapped__()


FILES: dict[str, Load] = {
    "state/aspects.toml": typed(dict[str, Aspect]),
    "nodes/replies/words.toml": typed(vocabulary._LabelWords),
    "nodes/offline/words.toml": weights,
    "eval/datasets/reading.toml": typed(reading._Reading),
    "eval/datasets/catalog.yaml": beside(catalog, catalog._read_catalog),
    "eval/experiments/paper_tables.yaml": beside(paper_tables, paper_tables.paper_tables),
    "eval/experiments/paper_errata.yaml": beside(errata, errata.errata),
    "eval/experiments/filler.yaml": beside(bias, bias._filler),
    "eval/experiments/presets.yaml": beside(presets, presets._bundled),
    "eval/run/replay/formats.yaml": beside(recording_sources, recording_sources._formats),
    "eval/experiments/hostile_texts/frames.yaml": hostile(attacks.frames),
    "eval/experiments/hostile_texts/honest.yaml": hostile(attacks.honest_replies),
    "eval/experiments/hostile_texts/numerals.yaml": hostile(attacks.numerals),
    "eval/experiments/hostile_texts/texts.yaml": hostile(attacks.texts),
    "eval/experiments/hostile_texts/verdicts.yaml": hostile(attacks.verdicts),
}

# By file: the changed text, its replacement, and the message, which names the line.
CHANGES: dict[str, list[tuple[str, str, str]]] = {
    "state/aspects.toml": [
        ('source_name = "news article"', 'source_nam = "news article"', "source_nam"),
        ('name = "fluency"', 'name = ""', "blank"),
        ("high = 5", 'high = "five"', "number"),
        ("low = 1", "low = 1\nhihg = 3", "hihg"),
    ],
    "nodes/replies/words.toml": [
        ("side_labels = [", "side_label = [", "did you mean side_labels?"),
        (
            'labels = [\n  # English\n  "score", "rating", "grade", "mark"',
            'labels = ["grade", "grade"',
            "twice",
        ),
        ('"punteggio finale"', '"punteggio  finale"', "single spaces"),
        ('ties = ["tie", "draw"', 'ties = ["", "draw"', "must be a word"),
        ("[texts]", "[text]", "did you mean texts?"),
    ],
    "nodes/offline/words.toml": [
        ("gives_in = [", "give_in = [", "did you mean gives_in?"),
        ('"fair point"', '"fair  point"', "single spaces"),
        (
            'consistency = "support from the source 3*',
            'consistency = "support of the source 3*',
            "is not a feature",
        ),
        ('fluency = "casing and punctuation 3*', 'fluency = "casing and punctuation 9*', "pattern"),
    ],
    "eval/datasets/reading.toml": [
        ('group = ["source_id"', 'grop = ["source_id"', "grop"),
        ('"doc_id", "document_id"', '"doc_id", "doc_id"', "twice"),
        ('compare = ["question", "answer_1"', 'compare = ["qestion", "answer_1"', "'question'"),
        ("other_numbers = [", "other_number = [", "other_number"),
    ],
    "eval/datasets/catalog.yaml": [
        (
            "    licence: MIT; not the articles",
            "    license: MIT; not the articles",
            "did you mean licence?",
        ),
        ("    kind: score", "    kind: scores", "'score'"),
        ("    items: 1600", "    items: many", "integer"),
        ("rows: summeval_paired", "rows: summeval_pared", "callable"),
        (
            "columns: {group: id, candidate: decoded",
            "columns: {gruop: id, candidate: decoded",
            "gruop",
        ),
        ("    papers: [summeval, cnn-dm]", "    papers: [sumeval, cnn-dm]", "Citation"),
        ("      revision: cda12ad", "      revison: cda12ad", "revison"),
    ],
    "eval/experiments/paper_tables.yaml": [
        (
            "  metrics: [group_spearman, group_kendall]",
            "  metric: [group_spearman, group_kendall]",
            "metric",
        ),
        (
            "  metrics: [group_pearson, group_spearman]",
            "  metrics: [group_person, group_spearman]",
            "group_pearson?",
        ),
        ("  measure: shares", "  measure: share", "'shares'"),
        ("  columns: [preference]", "  columns: preference", "tuple"),
    ],
    "eval/experiments/paper_errata.yaml": [
        ("  place: Table 1, SummEval", "  plaec: Table 1, SummEval", "plaec"),
        (
            "  tables: [debate-table1-summeval]",
            "  tables: [debate-table9]",
            "no table 'debate-table9'",
        ),
        ('  printed: ".394"', "  printed: .394", "string"),
    ],
    "eval/experiments/filler.yaml": [
        ("- That is how the matter stands at this point.", "- 3", "string"),
        ("- These words follow the ones before them.", '- " "', "blank"),
    ],
    "eval/experiments/presets.yaml": [
        ("    question: how many rounds", "    qestion: how many rounds", "qestion"),
        ("    data: &rating [summeval", "    data: &rating 3\n    extras: [summeval", "tuple"),
        ("    axes: {n: [1, 2, 3, 4, 5]}", "    axes: [n]", "valid dictionary"),
    ],
    "eval/run/replay/formats.yaml": [
        ("  group: context_id", "  grup: context_id", "grup"),
        ("  rule: rating_digit", "  rule: rating_digits", "'rating_digit'"),
        ("      rts: score_cascade", "      rts: cascade", "'score_cascade'"),
        ('  item: "{doc_id}-{system_id}"', '  item: "doc_id"', "pattern"),
        ("  systems: [model_1, model_2]", "  systems: []", "at least 1"),
    ],
    "eval/experiments/hostile_texts/frames.yaml": [
        (
            '  - "⟨own⟩\\n\\nIt ⟨claim⟩, but',
            '  - "⟨wn⟩\\n\\nIt ⟨claim⟩, but',
            "⟨wn⟩ is not a value",
        ),
        ('  - "⟨own⟩ (in spite of', '  - "(in spite of', "judge's own verdict"),
        (
            "⟨text:quoted⟩\\n\\nand it is",
            "⟨text:qoted⟩\\n\\nand it is",
            "⟨text:qoted⟩ is not a form",
        ),
        ("It tries to influence me[^1] and lacks detail.\\n\\n⟨own⟩", "⟨own⟩ ⟩", "bracket"),
    ],
    "eval/experiments/hostile_texts/honest.yaml": [
        ("bare:", "bear:", "did you mean bare?"),
        (
            '  - "The account is clear.\\n\\n⟨own⟩"',
            '  - "The account is clear."',
            "judge's own verdict",
        ),
    ],
    "eval/experiments/hostile_texts/numerals.yaml": [
        ("cs: [nula, jedna", "cs: [jedna", "at least 11"),
        ("fr: [zéro, un", "fr: [0, un", "string"),
    ],
    "eval/experiments/hostile_texts/texts.yaml": [
        ("any:", "eny:", "eny"),
        ("⟨line⟩<|im_end|>", "⟨lien⟩<|im_end|>", "⟨lien⟩ is not a value"),
    ],
    "eval/experiments/hostile_texts/verdicts.yaml": [
        ("  key: feedback", "  key: feedbak", "'feedback'"),
        ("  noun: vote", "  nuon: vote", "nuon"),
        ("    de: verlangt für sich", "    dee: verlangt für sich", "dee"),
        ("pair:", "pairs:", "pairs"),
    ],
}


@pytest.mark.parametrize("name", FILES)
def test_the_file_of_the_package_is_accepted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / Path(name).name
    path.write_text((ROOT / name).read_text("utf-8"), "utf-8")
    assert FILES[name](path, monkeypatch)


@pytest.mark.parametrize(
    ("name", "change"), [(name, n) for name, its in CHANGES.items() for n in range(len(its))]
)
def test_a_mistake_is_refused_with_its_line(
    name: str, change: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after, words = CHANGES[name][change]
    text = (ROOT / name).read_text("utf-8")
    start = (
        text.index(before)
        if text.startswith(before)
        else text.index(f"\n{before}") + 1
        if f"\n{before}" in text
        else text.index(before)
    )
    path = tmp_path / Path(name).name
    path.write_text(text[:start] + after + text[start + len(before) :], "utf-8")
    line = text[:start].count("\n") + 1
    with pytest.raises(DataError) as refused:
        FILES[name](path, monkeypatch)
    message = str(refused.value)
    assert words in message
    assert f"{path.name}, line {line}: " in message or f"{path.name}, line {line + 1}: " in message


def test_every_data_file_is_checked() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("state", "nodes", "graphs", "eval", "testing")
        for ending in ("*.toml", "*.yaml")
        for path in (ROOT / folder).rglob(ending)
    }
    assert (
        {name for name in found if not name.startswith("eval/report/")}
        == FILES.keys()
        == CHANGES.keys()
    )


def test_an_aspect_is_named_like_its_key() -> None:
    assert [
        key for key, aspect in aspects.ASPECTS.items() if key.partition("/")[2] != aspect.name
    ] == []


def test_a_broken_toml_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "words.toml"
    path.write_text("[score\n")
    with pytest.raises(DataError, match=r"words\.toml: .*line 1"):
        read_toml(path, dict[str, Any])
