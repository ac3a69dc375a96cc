"""The command ``try``: a few items of one's own data, an answer, and what the rest would take."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from jurygraph.eval.datasets.items import parse_item
from jurygraph.eval.datasets.selection import Sample, sampled
from jurygraph.eval.experiments.versus_plan import take_up_run

from .on_demand import OnDemand
from .processes import Command, command_line
from .sample_data import read_lines
from .test_datasets import ROW

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = OnDemand("pandas")

pytestmark = pytest.mark.filterwarnings("always::jurygraph.eval.datasets.reading.ReadingNotice")


@pytest.fixture
def tried(command: Command) -> Command:
    """The command line beside a table as a spreadsheet saves it: eight articles of three summaries each."""
    rows = [
        {
            "Article ID": article,
            "Article": f"The ferry of {article} o'clock sank at its moorings. Nobody was aboard.",
            "Summary": ("The ferry sank.", "Forty people drowned in Peru.", "Nobody was aboard.")[system],
            "Consistency": ("5", "1", "4,5")[system],
        }
        for article in range(8)
        for system in range(3)
    ]
    pd.DataFrame(rows).to_csv("mine.csv", sep=";", index=False)
    return command


def test_it_answers_and_the_rest_is_judged_without_paying_again(tried: Command) -> None:
    assert tried("try", "mine.csv", "--sample", "12", "--out", "tried") == 0
    out = tried.printed
    assert "mine.csv: read with semicolons between columns, source = 'Article'" in tried.errors
    assert "12 of 24 items of mine.csv, with single and debate" in out
    assert "the other 12 items would take: single about 12 calls, $0; debate about" in out
    first = read_lines(Path("tried"))
    assert len(first) == 2 * 12
    # Two items of a group come before those of another.
    assert len({result["group"] for result in first}) == 12 / 2
    # What takes up the run judges the same items, not others of the same number.
    ids = {result["item"] for result in first}
    _, dataset, _ = take_up_run("debate", "debate", Path("tried"), None, {})
    assert {item.id for item in dataset} == ids
    rest = out[out.index("run single,debate") :].splitlines()[0]
    assert tried(*command_line(rest)) == 0
    every = read_lines(Path("tried"))
    assert all(result in every for result in first)
    assert len(every) == 2 * 24
    assert "total usage" in tried.printed


def test_what_cannot_be_tried_says_why(tried: Command) -> None:
    assert tried("try", "mine.csv", "--aspect", "fluency") == 2
    assert "has no labels for the aspect 'fluency'; it has consistency" in tried.errors


def test_a_sample_of_a_few_of_each_group_holds_the_smaller_ones() -> None:
    items = [(n, parse_item({**ROW, "id": n, "group": n // 10})) for n in range(100)]

    def chosen(size: int) -> list[int]:
        return [number for number, _ in sampled(lambda: iter(items), Sample(size, 3, of_group=2))[0]()]

    assert len({number // 10 for number in chosen(8)}) == 4
    assert {*chosen(8)} < {*chosen(20)} < {*chosen(21)}
    assert sorted(number % 10 for number in chosen(20)) == [0] * 10 + [1] * 10
    assert chosen(100) == [*range(100)]
