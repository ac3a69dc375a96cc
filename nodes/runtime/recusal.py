"""Recusal: a member of a panel does not vote on texts that a model of its family wrote."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ...state.errors import RecusedError
from ...state.settings import PanelSettings, Settings
from ...state.tasks import AUTHORS
from ...state.transcript import Turn
from ...state.verdict_warnings import NO_AUTHOR, UNKNOWN_FAMILY
from ..models.families import kinship


def recuses(settings: Settings) -> bool:
    """Return whether members do not vote on texts of their families."""
    return isinstance(settings, PanelSettings) and settings.recuse == "family"


def authors_of(task: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the known authors of a task's candidate, or of its two answers.

    >>> authors_of({"kind": "compare", "model_1": "gpt-4", "model_2": None})
    ('gpt-4',)
    """
    return tuple(str(task[name]) for name in AUTHORS if task.get(name))


def check_recusal(model: str, authors: Collection[str]) -> None:
    """Check that a model is of another family than all authors; unknown families pass.

    Raises:
        RecusedError: the model and an author are of one family.
    """
    found = kinship(model, authors)
    if found.author:
        raise RecusedError(
            f"recuse=family: {model} and the author {found.author} are of one family "
            f"({found.shared})."
        )


def unchecked(
    task: Mapping[str, Any], turns: Sequence[Turn], voters: Collection[str]
) -> Iterator[str]:
    """Yield a warning for each missing author and each unknown family, which recuse nobody.

    Args:
        task: the task, with its authors.
        turns: the turns of the debate.
        voters: the roles that vote.
    """
    authors = authors_of(task)
    if len(authors) < (2 if task["kind"] == "compare" else 1):
        yield NO_AUTHOR.of()
    models = {str(turn["model"]) for turn in turns if turn["role"] in voters and turn["model"]}
    names = {name for model in models for name in kinship(model, authors).unknown}
    for name in sorted(names):
        yield UNKNOWN_FAMILY.of(name=name)
