"""``jurygraph journal``: what is shown, and that nothing is deleted unasked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from jurygraph.eval.cli.app import app
from jurygraph.eval.journal.admin import prune, summarize
from jurygraph.state.errors import UsageError
from typer.testing import CliRunner

from .journal_locations import entry, key, opened, schema


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    asyncio.run(_two_runs(str(tmp_path / "journal.sqlite")))
    return tmp_path


async def _two_runs(where: str) -> None:
    for number, (run, model, cost) in enumerate([("ab12", "small", 0.25), ("cd34", "large", None)]):
        async with opened(where, run=run) as journal:
            await journal.keep(key(number), entry(model=model, cost=cost))
            await journal.invalidate([key(1)])


def _shown(*arguments: str) -> str:
    return CliRunner().invoke(app, ["journal", *arguments], catch_exceptions=False).output


def test_a_journal_is_shown_with_what_each_model_and_run_spent(where: str) -> None:
    asyncio.run(_two_runs(where))
    shown = _shown(where)
    about = " ".join(shown.split())
    for told in ("version 2, ", "2 calls, 2 replies cached, from 20", "1 invalidated, 0 in flight now"):
        assert told in about
    for words in (["small", "1", "100", "40", "20", "$0.2500"], ["cd34", "1", "100", "40", "20", "unknown"]):
        assert any([cell for cell in line.split() if cell != "│"] == words for line in shown.splitlines())


def test_what_is_named_is_deleted_and_nothing_without_prune(folder: Path) -> None:
    with pytest.raises(UsageError, match="add --prune to delete it"):
        _shown(str(folder), "--run", "ab12")
    with pytest.raises(UsageError, match=r"--prune needs .* --older-than DAYS"):
        _shown(str(folder), "--prune")
    with pytest.raises(UsageError, match="say which replies"):
        prune(str(folder / "journal.sqlite"))
    with pytest.raises(UsageError, match="no run 'z'; runs are ab12, cd34"):
        _shown(str(folder), "--run", "z", "--prune")
    assert summarize(folder / "journal.sqlite").replies == 2
    assert "deleted 1 reply" in _shown(str(folder / "journal.sqlite"), "--invalidated", "--prune")
    assert "deleted 1 reply" in _shown(str(folder), "--run", "ab12", "--prune")
    assert "deleted 0 replies" in _shown(str(folder), "--older-than", "0", "--prune")


def test_a_place_without_a_journal_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"journal\.sqlite: there is no journal"):
        _shown(str(tmp_path))
    assert not (tmp_path / "journal.sqlite").exists()
    with schema() as url, pytest.raises(UsageError, match="there is no journal"):
        _shown(url)
