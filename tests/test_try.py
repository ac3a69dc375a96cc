"""Test the command ``try``: some of one's items, an answer, and the cost of the rest."""

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jurygraph.eval.datasets.dataset import Dataset, describe_data
from jurygraph.eval.datasets.items import parse_item
from jurygraph.eval.datasets.selection import Sample, sampled
from jurygraph.eval.experiments.versus_plan import take_up_run

from .on_demand import OnDemand
from .processes import Command, command_line
from .sample_data import read_lines, write_lines
from .test_datasets import ROW

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = OnDemand("pandas")

pytestmark = pytest.mark.filterwarnings("always::jurygraph.eval.datasets.reading.ReadingNotice")


@pytest.fixture
def tried(command: Command) -> Command:
    """Return the command line with a spreadsheet's table: eight articles, three summaries each."""
    rows = [
        {
            "Article ID": article,
            "Article": f"The ferry of {article} o'clock sank at its moorings. Nobody was aboard.",
            "Summary": ("The ferry sank.", "Forty people drowned in Peru.", "Nobody was aboard.")[
                system
            ],
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
    assert "12 of 24 texts of mine.csv, consistency" in out
    assert re.search(r"judge all 24 .*\(about \d+ calls, \$0\)$", out, re.MULTILINE)
    first = read_lines(Path("tried"))
    assert len(first) == 2 * 12
    # Two items of a group come before those of another group.
    assert len({result["group"] for result in first}) == 12 / 2
    # Continuing the run judges the same items, not others of the same number.
    ids = {result["item"] for result in first}
    _, dataset, _ = take_up_run("debate", "debate", Path("tried"), None, {})
    assert {item.id for item in dataset} == ids
    rest = out[out.index("run single,debate") :].splitlines()[0].partition("   (")[0]
    assert tried(*command_line(rest)) == 0
    every = read_lines(Path("tried"))
    assert all(result in every for result in first)
    assert len(every) == 2 * 24
    assert "total usage" in tried.printed


def test_what_cannot_be_tried_says_why(tried: Command) -> None:
    assert tried("try", "mine.csv", "--aspect", "fluency") == 2
    assert "has no labels for the aspect 'fluency'; it has consistency" in tried.errors


def test_without_labels_it_says_before_any_call_that_there_will_be_no_agreement(
    tried: Command,
) -> None:
    rows = [{"id": str(n), "source": "The ferry sank.", "candidate": "It sank."} for n in range(3)]
    write_lines(Path("bare.jsonl"), rows)
    assert tried("try", "bare.jsonl", "--aspect", "fluency", "--out", "tried") == 0
    before, _, _ = " ".join(tried.printed.split()).partition("(no human labels)")
    assert (
        "no agreement with humans will be shown: bare.jsonl has fewer than 2 human labels for fluency (3 items)"
        in before
    )
    assert "add --columns human.fluency=COLUMN" in before


def test_a_few_items_of_each_group_are_drawn_at_random_by_the_seed() -> None:
    """75 articles with a summary of each of 16 systems, always in the same order."""
    rows = [
        {**ROW, "id": f"{a}-{s}", "group": f"a{a}", "system": f"s{s}"}
        for a in range(75)
        for s in range(16)
    ]
    data = Dataset.of("mine", [parse_item(row) for row in rows])

    def systems(seed: int) -> Counter[Any]:
        drawn = data.sample(150, seed, of_group=2)
        assert {*Counter(item.group for item in drawn).values()} == {2}
        return Counter(getattr(item, "system", None) for item in drawn)

    assert systems(1) == systems(1) != systems(2)
    # Binomial for each system, n = 75 articles, p = 2/16: mean 9.4, a standard deviation of 2.9 and
    # five of them.
    assert all(len(counts) == 16 and max(counts.values()) < 24 for counts in map(systems, range(5)))
    # A run of an earlier version is continued with its own sample.
    before = data.sample(150, 1, of_group=2, shuffled=False)
    assert {item.id.partition("-")[2] for item in before} == {"0", "1"}
    assert "shuffled" not in describe_data(before)["sample"]
    assert describe_data(data.sample(150, 1, of_group=2))["sample"]["shuffled"] is True


def test_a_sample_of_a_few_of_each_group_holds_the_smaller_ones() -> None:
    items = [(n, parse_item({**ROW, "id": n, "group": n // 10})) for n in range(100)]

    def chosen(size: int) -> list[int]:
        few = Sample(size, 3, of_group=2, shuffled=True)
        return [number for number, _ in sampled(lambda: iter(items), few)[0]()]

    assert len({number // 10 for number in chosen(8)}) == 4
    assert {*chosen(8)} < {*chosen(20)} < {*chosen(21)}
    assert [*Counter(number // 10 for number in chosen(20)).values()] == [2] * 10
    assert chosen(100) == [*range(100)]
