"""The placeholders of each bundled template, and checks of the placeholders of a replacing template.

Jinja itself reports an unknown name only when the template is rendered: at the first item of a run,
or later. It never reports a placeholder that a template leaves out, or one in another notation.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

import jinja2
import jinja2.meta
from jinja2 import nodes

from ...state.tasks import TEXTS, CompareTask, ScoreTask, shown_fields

_NUMBER_FORM = ("structured", "alone", "low", "high", "whole", "metric")
_POINTS_FORM = (*_NUMBER_FORM, "lowest", "highest", "names", "feedback", "explained")
_TASK_FORM = ("low", "high", "whole", "metric", "rubric")
_ROUNDS = ("round", "rounds", "totals")
_RATED_ROUNDS = ("round", "rounds", "scores")
_TEXTS_OF_SCORE = tuple(name for name in TEXTS if name in ScoreTask.model_fields)
_JUROR = ("number", "jurors", "background")
_WRITTEN_JUROR = ("number", "jurors", "title", "description")
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
    "checklist/checker": ("aspect", "criteria", "rubric"),
    "checklist/form_checks": ("structured", "alone", "count"),
    "checklist/task": ("aspect", "rubric", *_TEXTS_OF_SCORE),
    "commit_first/committer": ("asked", "wanted"),
    "commit_first/form_pair": _NUMBER_FORM,
    "commit_first/form_score": _NUMBER_FORM,
    "commit_first/judge": ("wanted", "several"),
    "commit_first/question": ("asked", "wanted", "question", "fact", "context"),
    "court/advocate": ("side", "others", *_ROUNDS),
    "court/case": (
        *("question", "answers", "context", "reference"),
        *("low", "high", "total_low", "total_high", "criteria"),
    ),
    "court/form_totals": (*_POINTS_FORM, "answers"),
    "court/form_vote": ("structured", "alone", "answers"),
    "court/judge": ("answers", *_ROUNDS),
    "court/juror_vote": _JUROR,
    "courtroom/advocate_alone": ("side", "other", *_ROUNDS),
    "courtroom/advocate_in_team": (
        *("side", "other", "round", "rounds"),
        *("number", "advocates", "lead", "heard"),
    ),
    "courtroom/aggregator": ("side", "other", "round"),
    "courtroom/baseline": (),
    "courtroom/case": (
        *shown_fields(CompareTask),
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
    "examination/answer": ("side", "other"),
    "examination/question": ("side", "other"),
    "faireval/scorer": (),
    "geval/form_rating": _NUMBER_FORM,
    "geval/form_steps": ("structured", "alone"),
    "geval/planner": ("aspect", "low", "high"),
    "geval/rubric": ("aspect", "rubric", "low", "high"),
    "geval/scorer": ("aspect",),
    "geval/system": (),
    "geval/task": ("aspect", "steps", "rubric", *_TEXTS_OF_SCORE),
    "jury/request": ("wanted",),
    "jury/score": _WRITTEN_JUROR,
    "jury/vote": _WRITTEN_JUROR,
    "rating/advocate": (
        *("side", "other", "round", "rounds"),
        *("number", "advocates", "lead", "heard"),
    ),
    "rating/aggregator": ("side", "other", "round"),
    "rating/feedback": _RATED_ROUNDS,
    "rating/judge": ("most", "wanted", *_RATED_ROUNDS),
    "rating/judge_of_one": ("side", "other", "wanted", *_RATED_ROUNDS),
    "refine/material": ("source", "fact", "context", "aspect", "rubric"),
    "refine/system": (),
    "refine/writer": ("candidate", "objections"),
    "shared/attached": ("names",),
    "shared/compare_task": (*shown_fields(CompareTask), *_TASK_FORM),
    "shared/form_critique": ("structured", "alone"),
    "shared/form_pair": _NUMBER_FORM,
    "shared/form_score": _NUMBER_FORM,
    "shared/form_text": ("structured", "alone"),
    "shared/log": ("turns", "alone"),
    "shared/repair": ("problem", "form", "cut_off"),
    "shared/rubric_points": ("criteria", "rubric"),
    "shared/score_rules": ("aspect", "choices"),
    "shared/score_task": (*shown_fields(ScoreTask), *_TASK_FORM),
    "shared/system": (),
    "shared/system_alone": (),
    "tools/evidence": ("evidence", "own"),
    "tools/look_up": ("structured", "alone", "tools", "left"),
}


_ESSENTIAL: Mapping[str, Collection[str]] = {
    "audit/auditor": ("speech",),
    "casting/role": ("description",),
    "casting/task": ("question", "source"),
    "chateval/referee": ("role",),
    "chateval/role_own": ("description",),
    "checklist/checker": ("criteria",),
    "checklist/task": ("candidate",),
    "commit_first/question": ("question",),
    "court/case": ("question", "answers"),
    "courtroom/case": ("question", "answer_1", "answer_2"),
    "courtroom/log": ("turns",),
    "debate/critic_own": ("persona",),
    "geval/task": ("candidate",),
    "jury/score": ("description",),
    "jury/vote": ("description",),
    "refine/writer": ("candidate", "objections"),
    "shared/compare_task": ("question", "answer_1", "answer_2"),
    "shared/log": ("turns",),
    "shared/score_task": ("candidate",),
    "tools/evidence": ("evidence",),
}
"""The placeholders with judged texts, agents' words and personas. A template must use them."""


class Unknown(NamedTuple):
    """A placeholder that a template does not have.

    Attributes:
        name: the placeholder's name, or the whole placeholder in another notation.
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


def essential_to(template: str, texts: Collection[str] = ()) -> list[str]:
    """Return the placeholders that a template must use.

    Args:
        template: the template's name.
        texts: the fields of tasks that have a text in the data.

    >>> essential_to("shared/score_task"), essential_to("geval/task", ["source", "candidate"])
    (['candidate'], ['source', 'candidate'])
    """
    needed = _ESSENTIAL.get(template, ())
    given = given_to(template) or ()
    # Only the templates for a task of this kind show its other texts.
    has_texts = needed and {*needed} <= {*texts}
    of_data = [name for name in texts if name in given] if has_texts else []
    return [*of_data, *(name for name in needed if name not in of_data)]


def used_placeholders(environment: jinja2.Environment, source: str) -> frozenset[str] | None:
    """Return the placeholders that a template uses, also in the templates that it includes.

    Returns:
        None if the name of an included template is only known when the template is rendered.

    >>> sorted(used_placeholders(jinja2.Environment(), "{{ source }}: {{ fence('c', candidate) }}"))
    ['candidate', 'fence', 'source']
    """
    used: set[str] = set()
    seen: set[str] = set()
    waiting = [source]
    while waiting:
        tree = environment.parse(waiting.pop())
        used |= jinja2.meta.find_undeclared_variables(tree)
        for name in jinja2.meta.find_referenced_templates(tree):
            if name is None or environment.loader is None:
                return None
            if name not in seen:
                seen.add(name)
                # A template that does not exist is an error when it is rendered.
                with suppress(jinja2.TemplateNotFound):
                    waiting.append(environment.loader.get_source(environment, name)[0])
    return frozenset(used)


_FOREIGN = re.compile(
    r"\$\{[A-Za-z_]\w*\}"  # ${source_text}, as in Python's string.Template and in shells
    r"|(?<![\\\w{$])\{[A-Za-z_]\w*\}(?!\})"  # {question}, as in str.format; not \boxed{N}
)
"""A placeholder in another notation than Jinja's, which would reach the model as it stands."""


def foreign_placeholders(environment: jinja2.Environment, source: str) -> Iterator[Unknown]:
    """Yield the placeholders of a template that are not in Jinja's notation, in order.

    >>> list(foreign_placeholders(jinja2.Environment(), "{{ a }}\\n${source_text} {question}"))
    [Unknown(name='${source_text}', line=2), Unknown(name='{question}', line=2)]
    """
    for line, kind, text in environment.lex(source):
        if kind == "data":
            for found in _FOREIGN.finditer(text):
                yield Unknown(found[0], line + text.count("\n", 0, found.start()))


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
