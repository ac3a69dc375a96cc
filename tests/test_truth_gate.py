"""The first screen says of judges of a known kind what is true of them, and nothing that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from .truth_gate import GATE, PAGE, faults, page, quoted, screens_on, without_figures

REWRITE = "python -m tests.truth_gate --write"


@pytest.mark.parametrize(("number", "name"), list(enumerate(GATE)), ids=list(GATE))
def test_the_first_screen_tells_the_truth_of(number: int, name: str, tmp_path: Path) -> None:
    screen = GATE[name].first_screen(tmp_path, number)
    assert not faults(GATE[name], screen), screen
    on_page = screens_on(PAGE.read_text(encoding="utf-8"))[name].replace("<br>", "\n")
    assert without_figures(on_page) == without_figures(quoted(GATE[name], screen)), REWRITE


def test_the_page_of_promises_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(screens_on(text)), REWRITE


def test_the_gate_can_shut() -> None:
    """A pattern that is lacking, or there where it must not be, is a fault."""
    known = GATE["a constant winner"]
    assert faults(known, "") != []
    assert faults(known, "always agrees best with humans") != []
