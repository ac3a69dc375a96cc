"""Test that the first screen and other sentences are true of simulated judges of known kind."""

import re
from pathlib import Path

import pytest

from .truth_gate import GATE, GROUPS, PAGE, PROMISES, SAID, TURNS, first_screen, without_figures

SCREENS: dict[str, str] = {}
"""The first screens of the judges of the gate, as they are made."""


@pytest.mark.parametrize("name", [*GATE, *TURNS, *SAID])
def test_the_first_screen_tells_the_truth_of(name: str, tmp_path: Path) -> None:
    SCREENS[name] = first_screen(name, tmp_path)
    assert not PROMISES[name].faults(SCREENS[name]), SCREENS[name]
    quotation = without_figures(PROMISES[name].quotation(SCREENS[name]))
    assert quotation in without_figures(PAGE.read_text(encoding="utf-8")), (
        "python -m tests.truth_gate --write"
    )
    if name in SAID:
        return
    first = SCREENS[name].splitlines()[0].removeprefix("first: ")
    assert len(first.split()) <= 12 and not first.endswith("."), (
        "a headline has at most twelve words"
    )


def test_every_world_has_a_promise_and_a_place_on_the_page() -> None:
    shown = [name for _, names in GROUPS.values() for name in names]
    assert sorted(shown) == sorted([*GATE, *TURNS, *SAID]) == sorted(PROMISES)
    assert all(promise.must or promise.must_not for promise in PROMISES.values())
    assert not re.search(r"\\d|\(\?|\^", PAGE.read_text(encoding="utf-8")), (
        "a page for users has no patterns"
    )


def test_a_sentence_that_is_lacking_or_false_is_a_fault() -> None:
    promise = PROMISES["a constant winner"]
    assert promise.faults("") != []
    assert promise.faults("always agrees best with your annotators") != []
