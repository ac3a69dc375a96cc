"""The placeholders of each bundled template, and a check for unknown ones in a replacing template.

Jinja itself reports an unknown name only when the template is rendered: at the first item of a run,
or later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import jinja2
import jinja2.meta
from jinja2 import nodes

from ...state.tasks import TEXTS, CompareTask, ScoreTask

_NUMBER_FORM = ("structured", "alone", "low", "high", "whole", "metric")
_POINTS_FORM = (*_NUMBER_FORM, "lowest", "highest", "names", "feedback", "explained")
_TASK_FORM = ("low", "high", "whole", "metric", "rubric")
_ROUNDS = ("round", "rounds", "totals")
_TEXTS_OF_SCORE = tuple(name for name in TEXTS if name in ScoreTask.model_fields)
_JUROR = ("number", "jurors", "background")
_ROLE = ("number", "title", "others", "question", "texts")

_GIVEN: Mapping[str, Collection[str]] = {
    "audit/auditor": ("earlier", "speech"),
    "audit/form_label": ("structured", "alone"),
    "audit/speeches": ("earlier", "speech"),
    "audit/system": (),
    "casting/form_personas": ("structured", "alone", "wanted"),
    "casting/request": ("wanted",),
    "casting/role": (*_ROLE, "description"),
    "casting/task": ("question", "source", "aspect"),
    "chateval/referee": ("role", "title", "agent", "wanted", "others", "last", "scored"),
    "chateval/role_own": (*_ROLE, "description"),
    "chateval/summarizer": (),
    "courtroom/advocate_alone": ("side", "other", *_ROUNDS),
    "courtroom/advocate_in_team": (
        *("side", "other", "round", "rounds"),
        *("number", "advocates", "lead", "heard"),
    ),
    "courtroom/aggregator": ("side", "other", "round"),
    "courtroom/baseline": (),
    "courtroom/case": (
        *CompareTask.model_fields,
        *("low", "high", "total_low", "total_high", "debated", "criteria"),
    ),
    "courtroom/feedback": _ROUNDS,
    "courtroom/form_total": _POINTS_FORM,
    "courtroom/form_totals": _POINTS_FORM,
    "courtroom/form_vote": ("structured", "alone"),
    "courtroom/judge": ("most", *_ROUNDS),
    "courtroom/judge_of_one": ("side", *_ROUNDS),
    "courtroom/juror_score": _JUROR,
    "courtroom/juror_vote": _JUROR,
    "courtroom/log": ("turns",),
    "courtroom/summarizer": ("latest",),
    "debate/commander": ("recipient", "first"),
    "debate/critic_moderate": (),
    "debate/critic_own": ("persona",),
    "debate/critic_plain": (),
    "debate/critic_sophisticated": (),
    "debate/critic_strict": (),
    "debate/critic_weak": (),
    "debate/relay_brief": ("subject",),
    "debate/relay_to_critic": ("value",),
    "debate/relay_to_scorer": ("value",),
    "debate/scorer_again": ("wanted",),
    "debate/scorer_first": ("wanted",),
    "debate/tie_breaker": ("wanted",),
    "faireval/scorer": (),
    "geval/form_rating": _NUMBER_FORM,
    "geval/form_steps": ("structured", "alone"),
    "geval/planner": ("aspect", "low", "high"),
    "geval/rubric": ("aspect", "rubric", "low", "high"),
    "geval/scorer": ("aspect",),
    "geval/system": (),
    "geval/task": ("aspect", "steps", "rubric", *_TEXTS_OF_SCORE),
    "refine/material": ("source", "fact", "context", "aspect", "rubric"),
    "refine/system": (),
    "refine/writer": ("candidate", "objections"),
    "shared/attached": ("names",),
    "shared/compare_task": (*CompareTask.model_fields, *_TASK_FORM),
    "shared/form_critique": ("structured", "alone"),
    "shared/form_pair": _NUMBER_FORM,
    "shared/form_score": _NUMBER_FORM,
    "shared/form_text": ("structured", "alone"),
    "shared/log": ("turns", "alone"),
    "shared/repair": ("problem", "form", "cut_off"),
    "shared/score_rules": ("aspect", "choices"),
    "shared/score_task": (*ScoreTask.model_fields, *_TASK_FORM),
    "shared/system": (),
    "shared/system_alone": (),
}


class Unknown(NamedTuple):
    """A placeholder that a template does not have.

    Attributes:
        name: the placeholder's name.
        line: the line that uses it.
    """

    name: str
    line: int


def given_to(template: str) -> Collection[str] | None:
    """Return the placeholders of a template; None if the template belongs to another package.

    >>> given_to("debate/scorer_first"), given_to("chateval/role_critic")
    (('wanted',), ('number', 'title', 'others', 'question', 'texts'))
    """
    # All bundled roles of referees have the same placeholders.
    by_default = _ROLE if template.startswith("chateval/role_") else None
    return _GIVEN.get(template, by_default)


def unknown_placeholders(
    environment: jinja2.Environment, source: str, given: Collection[str]
) -> Iterator[Unknown]:
    """Yield the unknown placeholders of a template in the order of its lines.

    Names that the template sets itself or tests with ``is defined`` are not placeholders.

    >>> list(unknown_placeholders(jinja2.Environment(), "Read:\\n{{ candidat }}", ["candidate"]))
    [Unknown(name='candidat', line=2)]
    """
    tree = environment.parse(source)
    undeclared = jinja2.meta.find_undeclared_variables(tree)
    asked_for = {
        test.node.name
        for test in tree.find_all(nodes.Test)
        if test.name in ("defined", "undefined") and isinstance(test.node, nodes.Name)
    }
    unknown = undeclared - {*given, *environment.globals} - asked_for
    lines: dict[str, int] = {}
    for used in tree.find_all(nodes.Name):
        if used.name in unknown:
            lines[used.name] = min(used.lineno, lines.get(used.name, used.lineno))
    yield from sorted((Unknown(*found) for found in lines.items()), key=lambda found: found.line)
