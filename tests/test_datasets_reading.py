"""Test encodings, separators, column names, guesses and their notices, and samples."""

import json
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jurygraph.eval import Dataset, evaluate, load_dataset
from jurygraph.eval.datasets.dataset import data_options, describe_data, load_again
from jurygraph.eval.datasets.items import CompareItem, ScoreItem
from jurygraph.eval.datasets.reading import ReadingNotice, guess_columns
from jurygraph.eval.datasets.selection import Sample
from jurygraph.state import UsageError

from .on_demand import OnDemand
from .processes import Command
from .sample_data import read_lines, refused, write_lines

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
    """Load a file, and return the notices about how it was read."""
    with pytest.warns(ReadingNotice) as told:
        dataset = load_dataset(path)
    return dataset, "\n".join(str(notice.message).removeprefix(f"{path}: ") for notice in told)


SAVED: dict[str, tuple[dict[str, Any], str]] = {
    "a German spreadsheet": (
        {"sep": ";", "decimal": ",", "encoding": "cp1252"},
        "cp1252 with semicolons",
    ),
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
    assert notice.startswith(
        f"{told}source = 'Article', candidate = 'Summary', group = 'Doc ID'"
    ), notice
    assert notice.endswith("human.fluency = 'Fluency', row numbers as ids")
    assert dataset.columns == {**FIELDS, "human.fluency": "Fluency"}
    items: list[Any] = [*dataset]
    found = [
        (item.id, item.group, item.source, item.candidate, item.label("fluency")) for item in items
    ]
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
            assert load_again(describe_data(dataset)).digest == dataset.digest


def test_whole_numbers_in_a_sheet_are_read_as_they_were_typed(tmp_path: Path) -> None:
    """A sheet stores 7 as 7.0."""
    texts = {"source": ["Rain.", "Snow."], "candidate": ["It rains.", "It snows."]}
    frame = pd.DataFrame({"id": [7, 8], "group": [1, 2], **texts, "human.fluency": [4.5, 4]})
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    with warnings.catch_warnings(action="ignore", category=ReadingNotice):
        items: list[Any] = [*load_dataset(tmp_path / "a.xlsx")]
    assert [(item.id, item.group, item.label("fluency")) for item in items] == [
        ("7", "1", 4.5),
        ("8", "2", 4.0),
    ]


ENCODED = [
    ("cp1252", "Der Bäcker fährt über die Brücke – „eilig“, für 5 €."),
    ("cp1252", "Hän söi päivällä leipää ja lähti sitten töihin."),
    ("cp1252", "Où est le marché ? Très près, à côté de la forêt où l'été est agréable."),
    ("cp1252", "Perché la città è così bella? Già lunedì partì verso la libertà."),
    ("cp1252", "café"),
    ("cp1252", "The café was naïve."),
    ("cp1252", "Jürgen"),
    ("cp1252", "El niño comió piña en España."),
    ("cp1252", "\u201cDéjà vu\u201d, she said \u2013 a cliché."),
    ("cp1251", "Да, это он."),
    ("cp1251", "iPhone нов"),
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
    assert text in str(dataset.items[0].source)  # type: ignore[union-attr]
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
    path.write_text(
        "prompt,response_a,response_b,winner\np,x,y,model_b\nq,x,y,tie (bothbad)\nr,x,y,A\n"
    )
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
    told, unused = notice.splitlines()
    assert told == "source = 'question', candidate = 'answer', row numbers as ids"
    assert unused.startswith(
        "Column `Rating` was not used. If `Rating` holds human scores of coherence, "
    )
    assert "add `--columns human.coherence=Rating`; for another aspect, use its name." in unused


TEXTS = {"text": "s", "summary": "c"}
MEANT = {"source": "text", "candidate": "summary"}
GUESSED: dict[str, tuple[dict[str, Any], dict[str, str], dict[str, str]]] = {
    "its own names are left alone": (
        {"id": 1, "source": "s", "candidate": "c", "model": "m"},
        {},
        {},
    ),
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


def text(id: str, **fields: Any) -> ScoreItem:
    return ScoreItem(id=id, source="Noon.", candidate="Rain.", **fields)


def grouped(groups: int, each: int) -> Dataset:
    return Dataset.of(
        "mine", [text(f"{g}-{n}", group=f"g{g}") for g in range(groups) for n in range(each)]
    )


def lone(count: int) -> Dataset:
    return Dataset.of("mine", [text(f"i{n}") for n in range(count)])


def ids(dataset: Dataset) -> list[str]:
    return [item.id for item in dataset]


@pytest.mark.parametrize("size", [1, 7, 30, 100, 1000])
def test_a_sample_has_as_many_items_as_asked_in_the_files_order(size: int) -> None:
    whole = lone(100)
    sample = whole.sample(size, seed=5)
    assert len(sample) == len(ids(sample)) == min(size, 100)
    assert ids(sample) == [id for id in ids(whole) if id in set(ids(sample))]


def test_the_same_seed_chooses_the_same_and_another_seed_others() -> None:
    assert ids(lone(100).sample(20, seed=1)) == ids(lone(100).sample(20, seed=1))
    assert ids(lone(100).sample(20, seed=1)) != ids(lone(100).sample(20, seed=2))
    # Stored, so that no version of Python or numpy chooses other items for a published seed.
    assert ids(lone(10).sample(3, seed=0)) == ["i0", "i4", "i8"]


def test_whole_groups_are_drawn_and_a_larger_sample_holds_the_smaller() -> None:
    whole = grouped(50, 4)
    counts = Counter(item.group for item in whole.sample(22, seed=3))
    assert sorted(counts.values()) == [2, 4, 4, 4, 4, 4]
    sizes = [set(ids(whole.sample(size, seed=3))) for size in (3, 10, 22, 100, 200)]
    assert all(smaller < larger for smaller, larger in pairwise(sizes))


def test_every_item_is_as_likely_as_any_other() -> None:
    whole = lone(20)
    times = Counter(id for seed in range(500) for id in ids(whole.sample(5, seed)))
    # Binomial, n = 500, p = 1/4: a standard deviation is 9.7; five of them are exceeded once in a
    # million.
    assert len(times) == 20
    assert all(abs(count - 125) < 48 for count in times.values())


def test_categories_have_their_share_of_a_sample() -> None:
    def pairs(**counts: int) -> Dataset:
        texts = {"question": "q", "answer_1": "a", "answer_2": "b"}
        named = [(name, n) for name, count in counts.items() for n in range(count)]
        return Dataset.of(
            "mine", [CompareItem(id=f"{name}{n}", category=name, **texts) for name, n in named]
        )

    whole = pairs(coding=60, writing=30, maths=10)
    few = pairs(coding=6, writing=3, maths=1)
    for size in (10, 20, 50):
        counts = Counter(getattr(item, "category", "") for item in whole.sample(size, seed=4))
        assert counts == {"coding": 0.6 * size, "writing": 0.3 * size, "maths": 0.1 * size}
    ones = Counter(
        getattr(item, "category", "") for seed in range(1000) for item in few.sample(1, seed)
    )
    assert abs(ones["maths"] - 100) < 5 * (1000 * 0.1 * 0.9) ** 0.5
    unspread = whole.sample(10, seed=4, spread=False)
    assert ids(unspread) != ids(whole.sample(10, seed=4)) and unspread.chosen == Sample(10, 4)
    # Groups already contain every system, and a group is not split.
    assert grouped(50, 4).sample(8, seed=4).chosen == Sample(8, 4)


def test_a_sample_counts_the_aspects_and_the_first_items_of_its_own() -> None:
    whole = Dataset.of("mine", [text("rare", human={"relevance": 1}), *lone(50)])
    without = next(
        whole.sample(5, seed) for seed in range(50) if "rare" not in ids(whole.sample(5, seed))
    )
    assert whole.aspect_names() == ["relevance"]
    assert without.aspect_names() == []
    assert ids(without.first(2)) == ids(without)[:2]
    assert len(evaluate("single", without, aspects=["fluency"]).results) == 5
    with pytest.raises(UsageError, match="a sample must have 1 item or more, got 0"):
        whole.sample(0)


def manifest(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / "run.json").read_text()))


def judged(out: Path) -> list[str]:
    return [line["item"] for line in read_lines(out)]


def test_a_run_of_a_sample_says_so_and_is_extended_with_its_seed(
    command: Command, tmp_path: Path
) -> None:
    run = ("run", "single", "--data", "demo", "--aspect", "fluency", "--out", "out")
    assert command(*run, "--sample", "4", "--seed", "7") == 0
    assert manifest(tmp_path / "out")["data"]["sample"] == {"size": 4, "seed": 7}
    assert "|sample:seed 7|" in manifest(tmp_path / "out")["signatures"]["single"]
    first = judged(tmp_path / "out")
    assert first == ids(load_dataset("demo").sample(4, seed=7))
    assert command(*run, "--sample", "6", "--seed", "7") == 0
    assert set(first) < set(judged(tmp_path / "out"))
    assert len(judged(tmp_path / "out")) == 6
    assert command(*run, "--sample", "6", "--seed", "8") == 2
    assert "sample was seed 7, is seed 8" in command.errors
    assert command("run", "single", "--replies", "out", "--out", "again") == 0
    assert command("report", "out", "again") == 0


@pytest.mark.parametrize(("more", "words"), [
    ("--data demo --seed 3", "--seed only applies to --sample"),
    ("--replies x.jsonl --sample 3", "--sample only applies to a dataset"),
    ("--data demo --columns candidate=summary", "a dataset knows its columns"),
    ("--data mine.csv --columns candidate", "'candidate' is not of the form FIELD=COLUMN"),
    ("--data mine.csv --columns cnadidate=text", "turns; did you mean candidate?"),
    ("--data mine.csv --columns id=a,id=b", "'id' is given two columns, a and b"),
    ("--data mine.csv --columns id=a --columns id=b", "'id' is given two columns, a and b"),
])  # fmt: skip
def test_what_means_nothing_is_refused(command: Command, more: str, words: str) -> None:
    assert command("run", "single", *more.split()) == 2
    assert words in command.errors


PAIRS_FROM_0 = """id,question,answer_1,answer_2,human
a,Why?,Rain.,Snow.,0
b,When?,Rain.,Snow.,1
c,Where?,Rain.,Snow.,2
d,Who?,Rain.,Snow.,NA
"""
MISSING = ("", "NA", "N/A", "nan", "None", "null", "-", " na ")


def test_labels_counted_from_0_are_refused_and_translated_by_the_remedy(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "pairs.csv").write_text(PAIRS_FROM_0)
    run = ("run", "single", "--data", "pairs.csv", "--out", "out")
    assert command(*run) == 2
    assert "pairs.csv, line 2: field 'human': '0' is not 1, 2 or tie" in command.errors
    assert 'add --labels "0=1,1=2,2=tie"' in command.errors
    assert command(*run, "--labels", "0=1,1=2") == 2
    assert "line 4: field 'human': '2' is not among the values of --labels (0, 1)" in command.errors
    assert command(*run, "--labels", "0=1,1=2,2=tie") == 0
    assert [line["human"] for line in read_lines(tmp_path / "out")] == ["1", "2", "tie", None]
    recorded = manifest(tmp_path / "out")
    assert "|labels:0=1,1=2,2=tie|" in recorded["signatures"]["single"]
    assert [item.label(None) for item in load_again(recorded["data"])] == ["1", "2", "tie", None]
    assert data_options(recorded["data"])[2:] == ["--labels", "0=1,1=2,2=tie"]
    # A run of the same file with other labels is another run.
    assert command(*run, "--labels", "0=2,1=1,2=tie") == 2
    with pytest.raises(
        UsageError, match=r"--labels .* only applies to a file or data frame of your own"
    ):
        load_dataset("demo", label_codes={"0": "1"})
    [item] = load_dataset([{**PAIRS[0], "human": 0}], label_codes={"0": "1"})
    assert item.label(None) == "1"


PAIRS = [{"id": "a", "question": "Why?", "answer_1": "Rain.", "answer_2": "Snow."}]


@pytest.mark.parametrize("word", MISSING)
def test_missing_labels_are_missing_in_csv_json_and_frames(word: str, tmp_path: Path) -> None:
    text = {"source": "Noon.", "candidate": "Rain."}
    rows = [
        {"id": "a", **text, "human": {"fluency": word}},
        {"id": "b", **text, "human": {"fluency": 3}},
    ]
    write_lines(tmp_path / "rows.jsonl", rows)
    (tmp_path / "rows.csv").write_text(
        f"id,source,candidate,human.fluency\na,Noon.,Rain.,{word}\nb,Noon.,Rain.,3\n"
    )
    winners: list[dict[str, Any]] = [
        {**PAIRS[0], "human": word},
        {**PAIRS[0], "id": "b", "human": ["1", word, 2]},
    ]
    doors: list[Any] = [tmp_path / "rows.jsonl", tmp_path / "rows.csv", rows]
    for data in doors:
        first, second = load_dataset(data)
        assert (first.label("fluency"), second.label("fluency")) == (None, 3)
    first, second = load_dataset(winners)
    assert (first.label(None), second.label(None)) == (None, "tie")
    assert second.about(None)["annotations"] == ("1", None, "2")


@pytest.mark.parametrize(
    ("word", "value"),
    [("TRUE", 1), ("false", 0), (True, 1), ("yes", 1), ("3,5", 3.5), ("\uff14", 4)],
)
def test_a_score_is_read_alike_in_csv_json_and_frames(
    word: Any, value: float, tmp_path: Path
) -> None:
    row = {"id": "a", "source": "Noon.", "candidate": "Rain."}
    write_lines(tmp_path / "rows.jsonl", [{**row, "human": {"fluency": word}}])
    (tmp_path / "rows.csv").write_text(
        f'id,source,candidate,human.fluency\na,Noon.,Rain.,"{word}"\n'
    )
    for data in (tmp_path / "rows.jsonl", tmp_path / "rows.csv", [{**row, "human.fluency": word}]):
        [item] = load_dataset(data)
        assert item.label("fluency") == value


NAMES = "id=key,group=article,source=text,candidate=summary,human.fluency=rating,references=refs"


@pytest.mark.parametrize("field", ["group", "candidate"])
def test_a_column_that_no_row_has_is_told_with_those_there_are(tmp_path: Path, field: str) -> None:
    path = write_lines(
        tmp_path / "mine.jsonl", [{"id": "a", "source": "s", "candidate": "c", "about": "x"}]
    )
    words = (
        r"mine\.jsonl: no row has a value in the column 'topic'; columns are id, source, candidate"
    )
    refused(words, path, columns={field: "topic"})


def test_columns_may_have_their_own_names_and_a_run_of_them_says_so(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "mine.csv").write_text(
        'key,article,text,summary,rating,refs\n1,a,Noon.,Rain.,4,"[""Sun.""]"\n2,a,Noon.,Hail.,,\n'
    )
    one, two = load_dataset("mine.csv", columns=dict(pair.split("=") for pair in NAMES.split(",")))
    assert isinstance(one, ScoreItem)
    assert isinstance(two, ScoreItem)
    assert (one.id, one.group, one.source, one.candidate) == ("1", "a", "Noon.", "Rain.")
    assert (one.human, one.references) == ({"fluency": 4.0}, ("Sun.",))
    assert (two.candidate, two.human, two.references) == ("Hail.", {}, ())
    run = ("run", "single", "--data", "mine.csv", "--out", "out")
    assert command(*run, "--columns", NAMES) == 0
    assert f"|columns:{NAMES}|" in manifest(tmp_path / "out")["signatures"]["single"]
    assert judged(tmp_path / "out") == ["1", "2"]
    data = manifest(tmp_path / "out")["data"]
    assert ids(load_again(data)) == ["1", "2"]
    assert command("show", "out", "1") == 0
    assert "Rain." in command.printed
    assert command(*run) == 2
