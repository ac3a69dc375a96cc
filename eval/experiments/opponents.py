"""Choose what a protocol is held against: samples of a single judge, and an ensemble of judges who are all alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...graphs.base import Graph
from ...graphs.given_graphs import judges_of
from ...graphs.options import RunSettings
from ...graphs.registry import find_protocol, protocol_names
from ...graphs.wrapper import all_judges
from ...nodes.bound_judge import Models, by_role
from ...nodes.models.loaded_model import LoadedModel
from ...state.checked import listed
from ...state.errors import UsageError
from ...state.protocols import Ensemble
from ...state.settings.base_settings import explicitly_set
from ..analysis.equal_cost import ensemble_protocols
from ..plan.plan import Options, settings_under

_NO_COUNTERPART = "has no single-judge counterpart"
SAMPLED = 1.0
"""The temperature at which a single judge is sampled, where nobody sets one: at 0 its samples would all be alike."""


@dataclass(frozen=True, eq=False)
class Opponent:
    """Describes what is asked several times with the budget of a protocol.

    Attributes:
        name: of the protocol that is asked.
        panel: how an ensemble of any size is made of it; ``None`` for a judge that is asked repeatedly.
        settings: what is set for it.
    """

    name: str
    panel: Ensemble | None
    settings: Mapping[str, Any]

    def title(self, size: float) -> str:
        """Name it at a size, on average over the items.

        >>> Opponent("single", None, {}).title(4.25)
        '4.2 samples of single'
        """
        number = f"{size:.1f}".removesuffix(".0")
        if self.panel is None:
            return f"{number} sample{'' if number == '1' else 's'} of {self.name}"
        return f"{self.name} of {number} judges of one role"


def opponent_names(name: str, against: Sequence[str]) -> list[str]:
    """Return the names of a judge's opponents; by default the single judge, and the ensemble of such.

    Raises:
        UsageError: an unknown opponent, or the judge itself.
    """
    usual = [judge for panel, ensemble in ensemble_protocols().items() for judge in (ensemble.single, panel)]
    chosen = list(dict.fromkeys(against or usual))
    known = [opponent for opponent in dict.fromkeys([*usual, *protocol_names()]) if opponent != name]
    for opponent in chosen:
        if opponent not in protocol_names():
            raise UsageError(f"unknown opponent {opponent!r}; opponents are {listed(known, opponent)}")
    if name in usual or name in chosen:
        remedy = "Name a protocol whose agents talk, or name its opponents with --against (against=)"
        raise UsageError(f"{name} {_NO_COUNTERPART}: protocols are compared with it. {remedy}")
    return chosen


def opponents_of(graph: Graph, chosen: Sequence[str], options: Options) -> list[Opponent]:
    """Make the opponents of a judge, with what is set for them.

    Args:
        graph: the judge's, compiled.
        chosen: the names of the opponents.
        options: as given for the judge. Settings that opponents have in common with every protocol hold for them, too;
            their own stand under their names.

    Raises:
        UsageError: a setting that the budget decides.
    """
    panels = ensemble_protocols()
    own = judges_of(graph).get("")
    given = {**(explicitly_set(own.bound) if own else {}), **(options.get("settings") or {})}
    opponents = []
    for judge in chosen:
        panel, own_settings = panels.get(judge), settings_under(judge, given)
        # The budget says how many judges an ensemble has, and they must be alike for a smaller one to be inside it.
        fixed = panel.settings(1, True) if panel else {}
        if follows := [key for key in own_settings if key in fixed]:
            every = "all the identical judges it pays for"
            raise UsageError(f"{judge}.{follows[0]} follows from the budget: {every}")
        shared = _shared_settings([judge]) - {*fixed}
        settings = {} if panel else {"temperature": SAMPLED}
        settings |= {key: value for key, value in given.items() if key in shared}
        opponents.append(Opponent(judge, panel, {**settings, **own_settings}))
    return opponents


def own_options(name: str, given: bool, against: Sequence[str], options: Options) -> Options:
    """Return the options of the judge itself: without what is set for its opponents.

    Args:
        name: of the judge.
        given: whether it is a graph, which has settings and models of its own.
        against: names of its opponents.
        options: as given for all.
    """
    settings = {key: value for key, value in (options.get("settings") or {}).items() if key not in against}
    if not given:
        return {**options, "settings": cast("RunSettings", settings)}
    unused = [key for key in settings if key not in _shared_settings(against)]
    if unused:
        elsewhere = f"set it for an opponent, such as {next(iter(against), 'single')}.{unused[0]}"
        remedy = f"give {unused[0]} to its build(), or {elsewhere}"
        raise UsageError(f"{name} is a graph with settings of its own: {remedy}")
    return {**options, "settings": {}, "models": None}


def _shared_settings(names: Sequence[str]) -> set[str]:
    """Return the settings that a judge and such opponents have in common; models are given by themselves."""
    return {key for name in names for key in find_protocol(name).protocol.settings.model_fields} - {"models"}


def models_of(name: str, graph: Graph, given: Models | None) -> Models | None:
    """Return the model of a single judge beside a judge: the one of all its roles.

    Raises:
        UsageError: it asks several models, or nobody knows which.
    """
    if given is not None and (by_name := by_role(given)):
        candidates = [by_name["*"]] if "*" in by_name else list(by_name.values())
    else:
        bound_judges = [inner for outer in judges_of(graph).values() for inner in all_judges(outer)]
        if not bound_judges:
            unknown = "it contains no judge of this package, so its model is unknown"
            raise UsageError(f"{name} {_NO_COUNTERPART}: {unknown}")
        candidates = []
        for bound in bound_judges:
            candidates += bound.bound.models.values()
            candidates += [model.chat for model in bound.chosen().values() if isinstance(model, LoadedModel)]
    # Compared and not hashed: a chat model need not be hashable.
    different = [model for place, model in enumerate(candidates) if model not in candidates[:place]]
    if len(different) > 1:
        remedy = 'name the single judge\'s model with --model (models={"*": ...})'
        raise UsageError(f"{name} {_NO_COUNTERPART}: its roles have several models; {remedy}")
    return {"*": different[0]} if different else None
