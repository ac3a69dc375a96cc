"""Test how many corrupted members each rule of a panel withstands, on recorded replies."""

import re
from types import ModuleType

import pytest

from .source_tree import ROOT, imported

PAGE = (ROOT / "docs" / "panels.md").read_text(encoding="utf-8")
STATED = {
    rule: (int(ratings), int(comparisons))
    for rules, ratings, comparisons in re.findall(
        r"^\| (`\w+`[^|]*) \| (\d+) % \| (\d+) % \|$", PAGE, re.MULTILINE
    )
    for rule in re.findall(r"`(\w+)`", rules)
}


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return imported("benchmarks/breakdown.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule", ["mean", "median", "trimmed", "geometric_median", "majority", "weighted"]
)
def test_a_rule_breaks_where_the_page_says(bench: ModuleType, rule: str) -> None:
    assert {*STATED} == {*bench.RULES}
    [row] = re.findall(rf"^\| `{rule}` \| (.*) \|$", PAGE, re.MULTILINE)[:1]
    found = {share: bench.outcome(rule, share) for share in bench.SHARES}
    shown = [f"{cell.outside:.0%} / {cell.turned:.0%}" for cell in found.values()]
    assert row.split(" | ") == shown
    assert found[0] == (0, 0)
    ratings = min(share for share, cell in found.items() if cell.outside)
    comparisons = min(share for share, cell in found.items() if cell.turned)
    assert (ratings, comparisons) == STATED[rule]


@pytest.mark.parametrize("kind", ["score", "compare"])
@pytest.mark.parametrize("rule", ["mean", "median", "trimmed", "geometric_median", "majority"])
def test_which_members_are_corrupted_does_not_matter(
    bench: ModuleType, rule: str, kind: str
) -> None:
    [replies, *_] = bench.recorded(kind)
    # The same replies at other seats: the corrupted ones are the first three members.
    texts = list(replies.values())
    moved = dict(zip(bench.NAMES, texts[:3] + texts[:2:-1], strict=True))
    keys = ("score", "scores", "winner")
    first = bench.judge(kind, rule, replies, 3)
    second = bench.judge(kind, rule, moved, 3)
    assert [first[key] for key in keys] == [second[key] for key in keys]
