"""Choose a protocol's opponents: samples of a single judge, and an ensemble of equal judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...graphs.engine.base import Graph
from ...graphs.engine.given_graphs import judges_of
from ...graphs.engine.options import RunSettings
from ...graphs.engine.registry import find_protocol, judge_of, protocol_names
from ...graphs.engine.wrapper import all_judges
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.runtime.bound_judge import Models, by_role
from ...state.checked import listed
from ...state.errors import UsageError
from ...state.protocol_facts import Ensemble
from ...state.settings.base_settings import explicitly_set
from ..analysis.equal_cost import ensemble_protocols
from ..run.plan.plan import Options, settings_under

_NO_COUNTERPART = "has no single-judge counterpart"
SAMPLED = 1.0
"""The default temperature for samples of a single judge: at 0 they would all be equal."""


@dataclass(frozen=True, eq=False)
class Opponent:
    """A judge that is asked several times with the budget of a protocol.

    Attributes:
        name: the name of its protocol.
        panel: how to make an ensemble of any size; ``None`` for a judge that is sampled
            repeatedly.
        settings: its settings.
    """

    name: str
    panel: Ensemble | None
    settings: Mapping[str, Any]

    def title(self, size: float) -> str:
        """Name it at a mean size over the items.

        >>> Opponent("single", None, {}).title(4.25)
        '4.2 samples of single'
        """
        number = f"{size:.1f}".removesuffix(".0")
        if self.panel is None:
            return f"{number} sample{'' if number == '1' else 's'} of {self.name}"
        return f"{self.name} of {number} judges of one role"


def opponent_names(name: str, against: Sequence[str]) -> list[str]:
    """Return the names of a judge's opponents; by default single judge and ensemble.

    Args:
        name: the name of the judge.
        against: names of protocols, or files that define one, such as ``mine.py``.

    Raises:
        UsageError: an unknown opponent, a graph instead of a protocol, or the judge itself.
    """
    usual = [
        judge
        for panel, ensemble in ensemble_protocols().items()
        for judge in (ensemble.single, panel)
    ]
    if name in usual and not against:
        raise UsageError(
            f"{name} {_NO_COUNTERPART}: protocols are compared with it. Name a protocol whose "
            "agents talk, or name its opponents with --against (against=)"
        )
    chosen = list(dict.fromkeys(map(_opponent_name, against or usual)))
    known = [
        opponent for opponent in dict.fromkeys([*usual, *protocol_names()]) if opponent != name
    ]
    if name in chosen:
        others = ", ".join(known)
        raise UsageError(f"{name} cannot be its own opponent; opponents are {others}")
    for opponent in chosen:
        try:
            find_protocol(opponent)
        except UsageError as error:
            raise UsageError(
                f"unknown opponent {opponent!r}; opponents are {listed(known, opponent)}"
            ) from error
    return chosen


def _opponent_name(given: str) -> str:
    """Return the name of an opponent's protocol, which may be in a file."""
    judge = judge_of(given)
    if isinstance(judge, str):
        return judge
    raise UsageError(
        f"{given} is a graph with settings of its own, but an opponent is built again with "
        "other settings: name the file of a protocol"
    )


def opponents_of(graph: Graph, chosen: Sequence[str], options: Options) -> list[Opponent]:
    """Make the opponents of a judge, with their settings.

    Args:
        graph: the judge's compiled graph.
        chosen: the names of the opponents.
        options: the options of the judge. Settings that opponents share with every protocol
            also apply to them; their own settings are under their names.

    Raises:
        UsageError: a setting that the budget determines.
    """
    panels = ensemble_protocols()
    own = judges_of(graph).get("")
    given = {**(explicitly_set(own.bound) if own else {}), **(options.get("settings") or {})}
    opponents = []
    for judge in chosen:
        panel = panels.get(judge)
        own_settings = settings_under(judge, given)
        # The budget determines the number of judges. They must be equal, so that a smaller ensemble
        # is a part of a larger one.
        fixed = panel.settings(1, True) if panel else {}
        if follows := [key for key in own_settings if key in fixed]:
            raise UsageError(
                f"{judge}.{follows[0]} follows from the budget: all the identical judges it pays for"
            )
        shared = _shared_settings([judge]) - {*fixed}
        settings = {} if panel else {"temperature": SAMPLED}
        settings |= {key: value for key, value in given.items() if key in shared}
        opponents.append(Opponent(judge, panel, {**settings, **own_settings}))
    return opponents


def own_options(name: str, given: bool, against: Sequence[str], options: Options) -> Options:
    """Return the options of the judge, without the settings of its opponents.

    Args:
        name: the name of the judge.
        given: whether it is a graph, which has its own settings and models.
        against: the names of its opponents.
        options: the options for all.
    """
    settings = {
        key: value for key, value in (options.get("settings") or {}).items() if key not in against
    }
    if not given:
        return {**options, "settings": cast("RunSettings", settings)}
    unused = [key for key in settings if key not in _shared_settings(against)]
    if unused:
        raise UsageError(
            f"{name} is a graph with settings of its own: give {unused[0]} to its build(), or "
            f"set it for an opponent, such as {next(iter(against), 'single')}.{unused[0]}"
        )
    return {**options, "settings": {}, "models": None}


def _shared_settings(names: Sequence[str]) -> set[str]:
    """Return the settings that a judge and its opponents share, without models."""
    return {key for name in names for key in find_protocol(name).protocol.settings.model_fields} - {
        "models"
    }


def models_of(name: str, graph: Graph, given: Models | None) -> Models | None:
    """Return the model for a single judge as opponent: the one model of all the judge's roles.

    Raises:
        UsageError: the judge uses several models, or an unknown one.
    """
    if given is not None and (by_name := by_role(given)):
        candidates = [by_name["*"]] if "*" in by_name else list(by_name.values())
    else:
        bound_judges = [inner for outer in judges_of(graph).values() for inner in all_judges(outer)]
        if not bound_judges:
            raise UsageError(
                f"{name} {_NO_COUNTERPART}: it contains no judge of this package, so its model is "
                "unknown"
            )
        candidates = []
        for bound in bound_judges:
            candidates += bound.bound.models.values()
            candidates += [
                model.chat for model in bound.chosen().values() if isinstance(model, LoadedModel)
            ]
    # Compare instead of hashing: a chat model may not be hashable.
    different = [model for place, model in enumerate(candidates) if model not in candidates[:place]]
    if len(different) > 1:
        raise UsageError(
            f"{name} {_NO_COUNTERPART}: its roles have several models; "
            'name the single judge\'s model with --model (models={"*": ...})'
        )
    return {"*": different[0]} if different else None
