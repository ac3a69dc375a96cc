"""The first screen says of judges of a known kind what is true of them, and nothing that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from .truth_gate import GATE, first_screen, promises, without_figures

PROMISES = promises()


@pytest.mark.parametrize("name", GATE)
def test_the_first_screen_tells_the_truth_of(name: str, tmp_path: Path) -> None:
    screen, promise = first_screen(name, tmp_path), PROMISES[name]
    assert not promise.faults(screen), screen
    quotation = without_figures(promise.quotation(screen))
    assert without_figures(promise.quoted) == quotation, "python -m tests.truth_gate --write"


def test_the_page_has_all_judges_and_a_pattern_that_does_not_hold_is_a_fault() -> None:
    assert list(PROMISES) == list(GATE)
    assert all(promise.must for promise in PROMISES.values())
    promise = PROMISES["a constant winner"]
    assert promise.faults("") != []
    assert promise.faults("always agrees best with humans") != []
