"""Test tables in every format: the same figures, complete for programs, text as text."""

import csv
import io
import random
import re
from dataclasses import replace

import pytest
from jurygraph.eval.statistics.resampling import Statistic
from jurygraph.eval.tables import Column, Grid, text_column, to_csv, to_latex, to_markdown, to_rich
from jurygraph.eval.tables.formats import to_lines
from jurygraph.eval.tables.grid import CellValue, figure, printable, short
from rich.console import Console

THIRD = 1 / 3
GRID = Grid(
    "Agreement with people",
    (
        text_column("judge"),
        Column("rho", best="high"),
        Column("cost", form="money", best="low"),
        Column("p", form="p"),
        Column("calls"),
    ),
    (
        ("debate", Statistic(THIRD, -0.25, 0.75), 0.0021, 0.00001, 1234),
        ("more", Statistic(None), None, 0.25, 9),
        ("single", Statistic(0.1, None, None), 0.0, None, 1),
    ),
    ("signed debate #abc",),
)
HOSTILE = "a|b\x1b[31m_*<script>&%$#{}~^\\\n\u202e`"


def printed(grid: Grid, width: int = 120, split: bool = False, fit: int | None = None) -> str:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(to_lines(grid, width) if split else to_rich(grid, fit))
    return captured.get()


def test_a_terminal_shows_figures_as_their_columns_have_them() -> None:
    lines = [" ".join(line.split()) for line in printed(GRID).splitlines()]
    assert "debate 0.333 [-0.250, 0.750] $0.0021 <0.001 1,234" in lines
    assert "more - - 0.250 9" in lines
    assert "single 0.100 $0 - 1" in lines
    assert lines[-1] == "signed debate #abc"


def test_where_there_is_no_room_intervals_go_and_the_table_says_so() -> None:
    text = printed(GRID, width=40, fit=40)
    assert "0.333" in text
    assert "[-0.250" not in text
    assert "intervals are left out" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 40


def test_csv_has_every_digit_and_an_intervals_ends_in_columns_of_their_own() -> None:
    head, debate, more, single = csv.reader(io.StringIO(to_csv(GRID)))
    assert head == ["judge", "rho", "rho low", "rho high", "cost", "p", "calls"]
    assert float(debate[1]) == THIRD
    assert debate[2:] == ["-0.25", "0.75", "0.0021", "1e-05", "1234"]
    assert more == ["more", "", "", "", "", "0.25", "9"]
    assert single[1:4] == ["0.1", "", ""]


def test_markdown_is_a_table_that_github_reads() -> None:
    lines = to_markdown(GRID).splitlines()
    assert lines[0] == "### Agreement with people"
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 5
    assert {line.count("|") for line in table} == {6}
    assert "**0.333** [-0.250, 0.750]" in table[2]
    assert "**$0**" in table[4]
    assert lines[-1].strip() == "signed debate #abc".replace("#", "\\#")


def test_latex_is_a_table_with_booktabs_and_significant_leads_in_bold() -> None:
    assert r"\textbf{0.333}" not in to_latex(GRID)
    text = to_latex(replace(GRID, significant=frozenset({(0, 1)})))
    interval = r"{\small {[}$-$0.250, 0.750{]}}"
    assert r"\begin{tabular}{@{}lrrrr@{}}" in text
    assert all(text.count(rule) == 1 for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    for line in (
        rf"debate & \textbf{{0.333}} {interval} & \$0.0021 & \textless{{}}0.001 & 1,234 \\",
        r"more & -- & -- & 0.250 & 9 \\",
        r"single & 0.100 & \$0 & -- & 1 \\",
    ):
        assert line in text


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("mine.csv: rho", "mine: rho"),
        ("/home/ann/runs/mine.jsonl: rho", "mine: rho"),
        (r"C:\data\mine.xlsx: rho", "mine: rho"),
        ("rho on my data.parquet and/or demo", "rho on my data and/or demo"),
        ("difference vs. single (http://judge.internal:8000/v1)", "difference vs. single (...)"),
    ],
)
def test_a_latex_caption_has_hashes_and_neither_paths_nor_addresses(title: str, shown: str) -> None:
    assert rf"\caption{{{shown}}}" in to_latex(replace(GRID, title=title))
    both = to_latex(replace(GRID, title=title, configs=("2eef3f", "ae31c0")))
    assert rf"\caption[{{{shown}}}]{{{shown} (configurations \#2eef3f, \#ae31c0)}}" in both


def test_an_empty_table_has_a_form_too() -> None:
    empty = Grid("nothing", (text_column("judge"), Column("n")), ())
    assert "judge" in printed(empty) and to_csv(empty) == "judge,n\n"
    assert "| judge" in to_markdown(empty) and r"\bottomrule" in to_latex(empty)


def test_no_value_is_the_best_where_all_are_the_same_or_none_is_asked_for() -> None:
    columns = (text_column("judge"), Column("rho", best="high"), Column("n"))
    same = Grid("t", columns, (("a", 0.5, 1), ("b", 0.5, 2)))
    assert not any(cell.best for row in same.written() for cell in row)
    nan = Grid("t", columns, (("a", float("nan"), 1), ("b", 0.5, 2), ("c", 0.25, 2)))
    assert [row[1].best for row in nan.written()] == [False, True, False]
    assert [row[1].text for row in nan.written()] == ["-", "0.500", "0.250"]


def test_hostile_text_stays_text() -> None:
    grid = Grid(HOSTILE, (text_column(HOSTILE), Column("n")), ((HOSTILE, 1),), (HOSTILE,))
    markdown = to_markdown(grid)
    latex = to_latex(grid)
    for text in (printed(grid), markdown, latex):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert r"a\|b" in markdown
    assert r"\<script\>" in markdown
    assert len([line for line in markdown.splitlines() if line.startswith("|")]) == 3
    assert r"\textless{}script\textgreater{}\&\%\$\#\{\}\textasciitilde{}" in latex
    assert r"\textasciitilde{}\textasciicircum{}\textbackslash{}" in latex
    (row,) = list(csv.DictReader(io.StringIO(to_csv(grid))))
    assert row == {HOSTILE: HOSTILE, "n": "1"}
    assert printable("a\ud800b") == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize(("value", "form", "text"), [
    (0.1234, "plain", "0.123"), (1234567, "plain", "1,234,567"), (-0.0, "money", "$0"),
    (-0.00001, "plain", "0.000"), (0.5, "percent", "50.000%"), (0.0009, "p", "<0.001"),
    (float("inf"), "plain", "-"), (None, "money", "-"),
])  # fmt: skip
def test_figures(value: float | None, form: str, text: str) -> None:
    assert figure(value, Column("x", form=form)) == text  # type: ignore[arg-type]
    assert [short(count) for count in (0, 999, 1_000, 999_499, 999_500)] == [
        "0",
        "999",
        "1k",
        "999k",
        "1M",
    ]


@pytest.mark.parametrize("width", [20, 24, 30, 36, 40, 50, 60, 70, 80, 100, 120, 160])
def test_at_any_width_all_numbers_and_names_stand_whole(width: int) -> None:
    draw = random.Random(width)
    for _ in range(25):
        grid = any_grid(draw)
        text = printed(grid, width, split=True)
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= width
        together = re.sub(r"\s", "", text)
        for row in grid.written():
            for cell, column in zip(row, grid.columns, strict=True):
                if column.align == "right":
                    assert re.search(rf"(?<![\d.,$-]){re.escape(cell.text)}(?![\d.,])", text), (
                        cell,
                        text,
                    )
                else:
                    assert all(part in together for part in re.split(r"[\s,]+", cell.text)), (
                        cell,
                        text,
                    )


def any_grid(draw: random.Random) -> Grid:
    """A table of names of any length and numbers of any size."""
    names = draw.randint(1, 2)
    numbers = [
        Column(f"{draw.choice(['rho', 'tokens in', 'Δ'])} {n}") for n in range(draw.randint(1, 9))
    ]
    long = "debate n=2,persona=plain,commander=relay,temperature=0.5"
    called = ["debate", "single (openai:gpt-4o-mini)", long]
    rows: list[tuple[CellValue, ...]] = []
    for number in range(draw.randint(1, 4)):
        cells: list[CellValue] = [f"{draw.choice(called)} {number}" for _ in range(names)]
        for _ in numbers:
            value = draw.choice([draw.random(), draw.random() * 1e6, -draw.random()])
            forms: list[CellValue] = [value, Statistic(value, value - 1, value + 1), 12_345_678]
            cells.append(draw.choice(forms))
        rows.append(tuple(cells))
    columns = (*(text_column(f"name {n}") for n in range(names)), *numbers)
    return Grid("A table", columns, tuple(rows), ("Why.",))


def test_what_a_narrow_terminal_makes_of_a_table_is_said() -> None:
    figures = [Column(f"figure {n}") for n in range(6)]
    rows: tuple[tuple[CellValue, ...]] = (
        ("debate n=2,persona=plain", *(number / 7 for number in range(6))),
    )
    grid = Grid("A table", (text_column("judge"), *figures), rows)
    assert "too narrow" not in printed(grid, 120, split=True)
    assert "split into several tables" in " ".join(printed(grid, 60, split=True).split())
    assert "each value is on a line of its own" in " ".join(printed(grid, 24, split=True).split())
    assert "figure 5: 0.714" in printed(grid, 24, split=True)


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "\t", "\n=", "\uff1d"])
def test_no_text_begins_a_formula_where_a_spreadsheet_opens_a_csv(begins: str) -> None:
    text = f"{begins}cmd|' /C calc'!A0"
    harmless = ("-", "debate", "n=2", "-0.25", "+1e3", "a@b")
    columns = tuple(text_column(name) for name in (text, *harmless))
    grid = Grid("A table", (*columns, Column("value")), ((text, *harmless, -0.5),))
    head, row = csv.reader(io.StringIO(to_csv(grid)))
    assert head[:-1] == row[:-1] == [f"'{text}", *harmless]
    assert float(row[-1]) == -0.5
