"""Data as people have them: encodings, separators, names of columns; what is guessed is told, and nothing else is."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jurygraph.eval import Dataset, load_dataset
from jurygraph.eval.datasets.dataset import load_again
from jurygraph.eval.datasets.items import CompareItem, ScoreItem
from jurygraph.eval.datasets.reading import ReadingNotice, guess_columns

from .on_demand import OnDemand
from .sample_data import refused

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = OnDemand("pandas")

ARTICLE = "Es regnet über der Größe, sagt Zoë."
ROWS = [
    {"Doc ID": "d1", "Article": ARTICLE, "Summary": "Es regnet über.", "Fluency": 3.5},
    {"Doc ID": "d1", "Article": ARTICLE, "Summary": "Zoë – müde.", "Fluency": 2.667},
]
FIELDS = {"id": "#", "source": "Article", "candidate": "Summary", "group": "Doc ID"}


def read(path: Path) -> tuple[Dataset, str]:
    """Load a file, and return what is told of how it was read."""
    with pytest.warns(ReadingNotice) as told:
        dataset = load_dataset(path)
    [notice] = told
    return dataset, str(notice.message).removeprefix(f"{path}: ")


SAVED: dict[str, tuple[dict[str, Any], str]] = {
    "a German spreadsheet": ({"sep": ";", "decimal": ",", "encoding": "cp1252"}, "cp1252 with semicolons"),
    "Unicode text": ({"sep": "\t", "encoding": "utf-16"}, "utf-16 with tabs"),
    "UTF-8 with its mark": ({"encoding": "utf-8-sig"}, ""),
    "with an index": ({"index": True}, ""),
}


@pytest.mark.parametrize("form", SAVED)
def test_a_table_that_a_program_saved_is_read_as_it_was_meant(tmp_path: Path, form: str) -> None:
    how, read_as = SAVED[form]
    path = tmp_path / "mine.csv"
    pd.DataFrame(ROWS).to_csv(path, **{"index": False, **how})
    dataset, notice = read(path)
    told = f"read as {read_as} between columns, " if read_as else ""
    assert notice.startswith(f"{told}source = 'Article', candidate = 'Summary', group = 'Doc ID'"), notice
    assert notice.endswith("human.fluency = 'Fluency', row numbers as ids")
    assert dataset.columns == {**FIELDS, "human.fluency": "Fluency"}
    found = [(item.id, item.group, item.source, item.candidate, item.label("fluency")) for item in dataset]  # type: ignore[union-attr]
    assert found == [
        (str(number), row["Doc ID"], row["Article"], row["Summary"], row["Fluency"])
        for number, row in enumerate(ROWS, start=1)
    ]


def test_tabs_sheets_arrays_and_frames_are_read_alike(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS)
    tabs, book, array = (tmp_path / name for name in ("a.tsv", "a.xlsx", "a.json"))
    frame.to_csv(tabs, sep="\t", index=False)
    frame.to_excel(book, index=False)
    frame.to_json(array, orient="records")
    with pytest.warns(ReadingNotice):
        expected = Dataset.of_frame(frame).items
    for path in (tabs, book, array):
        dataset, notice = read(path)
        assert dataset.items == expected
        assert not notice.startswith("read")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert load_again(dataset.name, dataset.location, dataset.columns).digest == dataset.digest


ENCODED = [
    ("cp1252", "Der Bäcker fährt über die Brücke – „eilig“, für 5 €."),
    ("cp1252", "Hän söi päivällä leipää ja lähti sitten töihin."),
    ("cp1252", "Où est le marché ? Très près, à côté de la forêt où l'été est agréable."),
    ("cp1252", "Perché la città è così bella? Già lunedì partì verso la libertà."),
    ("cp1252", "Não há razão para a decisão; as crianças estão à espera, põe a mesa, você."),
    ("cp1250", "Wczoraj padał śnieg, a dziś świeci słońce i żółw idzie."),
    ("cp1250", "Příběh je dobře napsaný, ale ve městě některé údaje chybí."),
    ("cp1250", "Knjiga leži na polici, ki sem jo včeraj kupil v mestu."),
    ("cp1250", "A könyv a polcon fekszik, és az őr nem jött a városba."),
    ("cp1250", "Cartea e pe raftul pe care l-am cumpărat ieri."),
    ("cp1251", "Вчера шёл снег, а сегодня солнце."),
    ("cp932", "昨日は雪が降りましたが、今日は晴れです。"),
    ("gb18030", "昨天下雪了，今天出太阳了。"),
    ("cp949", "어제는 눈이 왔고 오늘은 맑습니다."),
    ("mac_roman", "Der Bäcker fährt über die Brücke für die schöne Größe."),
]


@pytest.mark.parametrize(("encoding", "text"), ENCODED)
def test_code_pages_are_told_apart(tmp_path: Path, encoding: str, text: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f'id,source,candidate\n1,"{text}",x\n', encoding=encoding)
    dataset, notice = read(path)
    assert text in dataset.items[0].source  # type: ignore[union-attr]
    assert notice == f"read as {encoding}"


def test_of_the_line_that_names_the_separator_nothing_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("sep=;\nid;source;candidate\n1;a, b;c\n2;a;b;c\n")
    refused("line 4: more cells than columns", path)
    path.write_text("sep=;\nid;source;candidate\n1;a, b;c;;\n")
    dataset, notice = read(path)
    assert [(item.id, item.source) for item in dataset] == [("1", "a, b")]  # type: ignore[union-attr]
    assert notice == "read with semicolons between columns"


def test_an_arena_s_votes(tmp_path: Path) -> None:
    path = tmp_path / "arena.csv"
    path.write_text("prompt,response_a,response_b,winner\nq,x,y,model_b\nq,x,y,tie (bothbad)\nq,x,y,A\n")
    dataset, notice = read(path)
    assert [item.label() for item in dataset if isinstance(item, CompareItem)] == ["2", "tie", "1"]
    assert "answer_1 = 'response_a', answer_2 = 'response_b', human = 'winner'" in notice


def test_a_question_may_be_the_source_of_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("question,answer,Rating\nWhat fell?,Rain.,4\n")
    dataset, notice = read(path)
    [item] = dataset
    assert isinstance(item, ScoreItem)
    assert (item.source, item.candidate) == ("What fell?", "Rain.")
    hint = "if 'Rating' holds human scores, name the aspect: --columns human.ASPECT=Rating"
    assert notice == f"source = 'question', candidate = 'answer', row numbers as ids; {hint}"


TEXTS, MEANT = {"text": "s", "summary": "c"}, {"source": "text", "candidate": "summary"}
GUESSED: dict[str, tuple[dict[str, Any], dict[str, str], dict[str, str]]] = {
    "its own names are left alone": ({"id": 1, "source": "s", "candidate": "c", "model": "m"}, {}, {}),
    "two that might be meant are not guessed": ({**TEXTS, "output": "d"}, {}, {}),
    "what is said stands": (
        {**TEXTS, "output": "d"},
        {"candidate": "output"},
        {"id": "#", "source": "text", "candidate": "output"},
    ),
    "numbers that are no scores": ({**TEXTS, "fluency": "good"}, {}, {"id": "#", **MEANT}),
    "an annotator's mean": (
        {"uid": "a", **TEXTS, "expert_coherence_mean": "3,5"},
        {},
        {"id": "uid", **MEANT, "human.coherence": "expert_coherence_mean"},
    ),
    "labels of another kind": (
        {"id": 1, "prompt": "q", "response_a": "x", "response_b": "y", "label": 0},
        {},
        {"question": "prompt", "answer_1": "response_a", "answer_2": "response_b"},
    ),
    "conversations": ({"messages": []}, {}, {"id": "#"}),
}


@pytest.mark.parametrize("case", GUESSED)
def test_a_column_is_taken_where_its_name_alone_says_what_it_holds(case: str) -> None:
    row, given, expected = GUESSED[case]
    assert guess_columns([row], given) == expected
