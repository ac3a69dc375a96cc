"""Test the papers' errata: the page that lists them, and their arithmetic from printed figures."""

import math
import re
from collections.abc import Sequence
from itertools import combinations_with_replacement
from statistics import fmean, pstdev, stdev

import numpy as np
import pytest
from jurygraph.eval.experiments.errata import Erratum, errata, errata_of
from jurygraph.eval.experiments.paper_tables import find_table, paper_tables
from scipy import stats

from .source_tree import beside

PAPERS = {"DEBATE", "ChatEval, arXiv", "ChatEval, ICLR", "ChatEval, arXiv and ICLR", "Courtroom"}


def row_of_page(one: Erratum) -> str:
    version = one.paper.partition(", ")[2]
    place = f"{version}: {one.place}" if version else one.place
    tables = ", ".join(f"`{name}`" for name in one.tables)
    right = one.right or "open"
    return f"| {place} | {one.page} | {one.printed} | {right} | {one.reason} | {tables} |"


def test_the_page_lists_every_erratum_and_no_other() -> None:
    page = beside("docs/papers/errata.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if re.match(r"\| (?!place)\w", line)]
    assert rows == [row_of_page(one) for one in errata()]
    assert {table for one in errata() for table in one.tables} <= {*paper_tables()}
    assert {one.paper for one in errata()} == PAPERS


def found(place: str, table: str) -> Erratum:
    """Return the only erratum of a table whose place has some words."""
    (one,) = (each for each in errata_of(table) if place in each.place)
    return one


def test_an_erratum_names_its_pages() -> None:
    one = str(found("row GPTScore", "debate-table1-summeval"))
    assert "average rho (page 3). Printed: .394; should be: .378. The mean" in one
    assert "extreme scores of humans (page 7)." in str(
        found("extreme scores", "debate-table2-summeval")
    )
    assert "number of jurors (pages 5, 6, 18). Printed" in str(
        found("number of jurors", "courtroom-table1")
    )
    # The page of an appendix can be unknown.
    assert "kappa .19 of Vicuna. Printed" in str(found("kappa .19", "chateval-table5"))


def rows(table: str) -> dict[tuple[str, str], dict[tuple[str, str], float]]:
    """Return a table's printed figures by row and model, without the empty ones."""
    wanted = find_table(table)
    return {
        (row, model): {
            place: figure
            for place, figure in wanted.printed_figures(row, model).items()
            if figure is not None
        }
        for row, models in wanted.printed.items()
        for model in models
    }


def three_digits(number: float) -> str:
    return f"{number:.3f}"[1:]


def test_the_averages_of_all_tables_are_means_except_for_two() -> None:
    wrong = {}
    for name, table in paper_tables().items():
        if "average" not in table.columns:
            continue
        for (row, _), figures in rows(name).items():
            for metric in table.metrics:
                aspects = [
                    figures[column, metric] for column in table.columns if column != "average"
                ]
                mean, average = fmean(aspects), figures["average", metric]
                # Aspects and average are rounded to three digits.
                if abs(mean - average) > 0.0011:
                    wrong[name, row] = three_digits(average), three_digits(mean)
    one = found("row GPTScore", "debate-table1-summeval")
    other = found("row MoverScore", "debate-table1-topical-chat")
    assert wrong == {
        ("debate-table1-summeval", "GPTScore"): (one.printed, one.right),
        ("debate-table1-topical-chat", "MoverScore"): (other.printed, other.right),
    }


def test_multiagent_is_below_g_eval_in_five_of_eight_averages() -> None:
    below = []
    for name in ("debate-table1-summeval", "debate-table1-topical-chat"):
        of = rows(name)
        for model in ("GPT-3.5", "GPT-4"):
            for metric in find_table(name).metrics:
                own = of["MultiAgent", model]["average", metric]
                if own < of["G-Eval", model]["average", metric]:
                    below.append((model, metric, own))
    assert len(below) == 5
    assert [each for each in below if each[0] == "GPT-4"] == [("GPT-4", "group_spearman", 0.507)]
    assert found("MultiAgent compared", "debate-table1-summeval")


def are_shares(percent: Sequence[float], of: int) -> bool:
    """Return whether figures with two digits are shares of a number of texts."""
    return all(abs(100 * round(share * of / 100) / of - share) <= 0.00501 for share in percent)


SHARES = {"debate-table2-summeval": (1600, 3), "debate-table2-topical-chat": (360, 1)}


@pytest.mark.parametrize(("name", "texts", "possible"), [(n, *of) for n, of in SHARES.items()])
def test_no_number_of_texts_has_the_printed_shares(name: str, texts: int, possible: int) -> None:
    table = find_table(name)
    of = rows(name)

    def column(row: str, model: str, aspect: str) -> list[float]:
        return [of[row, model][aspect, str(score)] for score in table.shares]

    for aspect in table.columns:
        human = column("human", "", aspect)
        # One text too many was counted.
        assert [n for n in range(20, texts + 202) if are_shares(human, n)] == [texts + 1]
        if name == "debate-table2-summeval":
            of_debate = column("DEBATE", "GPT-4", aspect)
            assert not [n for n in range(20, 1802) if are_shares(of_debate, n)]
    of_debate = [*of["DEBATE", "GPT-4"].values()]
    assert [share for share in of_debate if are_shares([share], texts)] == []
    assert len([share for share in of_debate if are_shares([share], texts + 1)]) == possible


def test_the_most_frequent_human_scores() -> None:
    most = []
    for name in SHARES:
        table = find_table(name)
        of = rows(name)["human", ""]
        for aspect in table.columns:
            most.append(max(table.shares, key=lambda score: of[aspect, str(score)]))
    assert most == [4, 5, 5, 4, 3, 3, 2]
    three = rows("debate-table2-topical-chat")
    higher = [
        aspect
        for aspect in find_table("debate-table2-topical-chat").columns
        if three["DEBATE", "GPT-4"][aspect, "3"] > three["human", ""][aspect, "3"]
    ]
    assert higher == ["naturalness", "coherence"]


def test_gains_of_chateval() -> None:
    accuracy = {key: of["preference", "accuracy"] for key, of in rows("chateval-table1").items()}
    gains = {
        version: [
            100 * (accuracy["multi-agent", model] - accuracy["single agent", model])
            for model in (f"ChatGPT, {version}", f"GPT-4, {version}")
        ]
        for version in ("arXiv", "ICLR")
    }
    assert gains["arXiv"] == pytest.approx([6.2, 2.5])
    assert gains["ICLR"] == pytest.approx([6.3, 3.0])
    relative = [6.2 / 0.538, 2.5 / 0.613]
    assert [f"{gain:.1f}" for gain in relative] == ["11.5", "4.1"]
    table = rows("chateval-table2")
    ours, peer = table["multi-agent", "GPT-4"], table["G-Eval", "GPT-4"]
    rho, tau = (
        ours["average", metric] / peer["average", metric] - 1 for metric in ("spearman", "kendall")
    )
    assert (f"{100 * rho:.1f}", f"{100 * tau:.1f}") == ("16.3", "9.9")
    alone = table["single agent", "ChatGPT"]
    lower = [
        place for place, figure in table["multi-agent", "ChatGPT"].items() if figure < alone[place]
    ]
    assert {column for column, _ in lower} == {"naturalness", "coherence"}
    alone = table["single agent", "GPT-4"]
    lower = [place for place, figure in ours.items() if figure < alone[place]]
    assert {column for column, _ in lower} == {"groundedness"}


RUNS = [(53.7, 1.4), (55.5, 0.7), (60.0, 0.9), (60.8, 0.7), (61.5, 0.5), (63.8, 0.9),
        (37.5, 1.3), (40.0, 1.1), (45.0, 1.5), (52.3, 1.3)]  # fmt: skip
"""Printed means and standard deviations of accuracies over 80 questions, in percent."""


def test_no_divisor_gives_all_standard_deviations_of_five_runs() -> None:
    printed = [
        (round(100 * mean["preference", "accuracy"], 1), round(100 * deviation, 1))
        for name in ("chateval-table1", "chateval-table5")
        for (row, model), mean in rows(name).items()
        if (
            deviation := find_table(name)
            .printed_deviations(row, model)
            .get(("preference", "accuracy"))
        )
    ]
    assert sorted(printed) == sorted(RUNS)
    only = {"five": set[float](), "four": set[float](), "neither": set[float]()}
    for mean, deviation in RUNS:
        middle = round(mean * 0.8)
        fits = {pstdev: False, stdev: False}
        for right in combinations_with_replacement(range(middle - 5, middle + 6), 5):
            accuracies = [1.25 * number for number in right]
            if abs(fmean(accuracies) - mean) > 0.051:
                continue
            for spread in fits:
                fits[spread] |= abs(spread(accuracies) - deviation) <= 0.0501
        kind = "five" if fits[pstdev] else "four" if fits[stdev] else "neither"
        assert not (fits[pstdev] and fits[stdev])
        only[kind].add(mean)
    assert only["five"] == {53.7, 61.5, 40.0}
    assert only["neither"] == {52.3}


def test_gains_of_the_courtroom() -> None:
    accuracy = {key: of["preference", "accuracy"] for key, of in rows("courtroom-table1").items()}
    models = list(find_table("courtroom-table1").printed["baseline"])

    def gains(row: str) -> list[float]:
        return [100 * (accuracy[row, name] / accuracy["baseline", name] - 1) for name in models]

    with_juries = gains("SAMRE")
    assert (f"{min(with_juries):.1f}", f"{max(with_juries):.1f}") == ("6.0", "7.2")
    table = rows("courtroom-table2")
    wrong = [
        (row, name, table[row, name]["preference", "gain"], f"{gain:.1f}")
        for row in ("MORE", "SAMRE without juries")
        for name, gain in zip(models, gains(row), strict=True)
        if f"{gain:.1f}" != str(table[row, name]["preference", "gain"])
    ]
    assert wrong == [("SAMRE without juries", "GPT-4-o", 10.5, "10.6")]
    assert f"{fmean(gains('SAMRE without juries')):.1f}" == "9.9"
    printed = [of["preference", "gain"] for of in table.values()]
    assert (min(printed), max(printed)) == (3.6, 10.8)


def test_the_p_values_of_the_courtroom_fit_no_common_number_of_samples() -> None:
    table = rows("courtroom-table3")
    accuracy = {key: of["preference", "accuracy"] for key, of in rows("courtroom-table1").items()}
    freedoms = np.arange(2, 3400)
    fitting = {}
    for (row, model), figures in table.items():
        t, p = figures["not stated", "t"], figures["not stated", "p"]
        is_near = np.abs(2 * stats.t.sf(t, freedoms) - p) <= 0.0005
        fitting[model] = {int(freedom) for freedom in freedoms[is_near]}
        # The smallest t over 3,300 votes: the accuracies are rounded to two digits, and the two
        # judges err on different votes.
        gain = accuracy[row, model] - accuracy["baseline", model] - 0.01
        differ = 2 - accuracy[row, model] - accuracy["baseline", model] + 0.01
        assert gain * math.sqrt(3300 / (differ - gain**2)) > 6
    assert set.intersection(*fitting.values()) == set()
    bounds = {model: (min(fits), max(fits)) for model, fits in fitting.items()}
    assert bounds == {
        "Llama-3-8B": (145, 287), "Qwen": (73, 113), "Gemini": (65, 108), "GPT-4-o": (59, 3399),
        "GPT-4-turbo": (23, 84), "GPT-3.5-turbo": (72, 3399),
    }  # fmt: skip
    assert sum(79 in fits for fits in fitting.values()) == 5


def test_a_bold_claim_has_its_counterexample_in_the_table() -> None:
    of = rows("debate-table1-summeval")
    peer = of["UniEval", ""]["average", "group_spearman"]
    assert peer > of["DEBATE", "GPT-3.5"]["average", "group_spearman"]
    assert peer > of["DEBATE", "Gemini Pro"]["average", "group_spearman"]
