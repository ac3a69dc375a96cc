"""Create a judge's task from the arguments of an evaluator.

Every argument is used, waived or refused by name.

inputs             -> source (a comparison: question)
outputs            -> candidate (a comparison: answer_1 and answer_2)
reference_outputs  -> reference
context            -> context
attachments        -> images and files, named in the context
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...state.aspects import Aspect
from ...state.checked import listed, shortened
from ...state.conversations import asked_and_answered, is_conversation, read_conversation
from ...state.errors import UsageError
from ...state.media import Media
from ...state.tasks import CompareTask, Rubric, ScoreTask, parse_task
from ..datasets.paths import PathError, look_up
from .attachments import add_attachments
from .texts import MESSAGES, is_absent, text_of

ARGUMENTS = ("inputs", "outputs", "reference_outputs", "context", "attachments")
"""The arguments of evaluators, here and in LangSmith and openevals."""

PEER_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("input", "user_input", "question", "query"), "inputs"),
    **dict.fromkeys(("output", "actual_output", "response", "answer", "submission"), "outputs"),
    **dict.fromkeys(
        (
            "expected",
            "expected_output",
            "expectations",
            "reference",
            "target",
            "ideal",
            "criterion",
        ),
        "reference_outputs",
    ),
    **dict.fromkeys(("retrieval_context", "retrieved_contexts", "contexts"), "context"),
}
"""The names of arguments and prompt places in autoevals, deepeval, Inspect, MLflow and ragas."""

_FROM_LANGSMITH = ("run", "example", "runs")
"""The arguments that LangSmith adds."""

_DEFAULTS = {
    "source": "inputs",
    "question": "inputs",
    "candidate": "outputs",
    "reference": "reference_outputs",
    "context": "context",
}
"""The default argument for each field of a task."""

_KEYS_OF_INPUTS = ("fact", "context")
"""Fields of a task that ``inputs`` may contain under these keys."""

_EXAMPLES = {
    "source": "inputs.article",
    "question": "inputs.prompt",
    "fact": "inputs.fact",
    "context": "inputs.documents",
    "candidate": "outputs.answer",
    "reference": "reference_outputs.answer",
}
"""Examples of another place for each field, for error messages."""

_OUTPUT_WORDS = re.compile(
    r"\b(?:candidates?|outputs?|responses?|answers?|repl(?:y|ies)|completions?|summar(?:y|ies)|generat\w+)\b",
    re.IGNORECASE,
)
"""The English words in criteria that refer to a model's output."""


class JudgedTask(NamedTuple):
    """A task, and the argument from which each of its texts was taken."""

    task: ScoreTask | CompareTask
    shown: dict[str, str]


@dataclass(frozen=True)
class TaskMaker:
    """Creates the tasks of one judge.

    Attributes:
        aspect: the aspect to rate; ``None`` for comparisons.
        criteria: the criteria of a comparison; ``None`` for the usual criteria.
        mapping: from a field of the task to its place, such as ``{"source": "inputs.article"}``.
        ignore: arguments of the call that the caller waives.
        named: the arguments that the judge's prompt names, which are the only ones shown; ``None``
            for a judge without a prompt.
        variables: further names in the judge's prompt; each is an argument of the call, shown in
            the context.
    """

    aspect: Aspect | None = None
    criteria: Sequence[str] | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    ignore: Sequence[str] = ()
    named: frozenset[str] | None = None
    variables: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if strange := [name for name in self.mapping if name not in self.fields]:
            raise UsageError(
                f"variable_mapping: {strange[0]!r} is not a field of this judge's task; "
                f"map {', '.join(self.fields)}"
            )
        if isinstance(self.ignore, str):
            raise UsageError(f"ignore must be a list of names of arguments, got {self.ignore!r}")
        # Raises the error about invalid criteria before the first call.
        self.made(dict.fromkeys(self.fields, "-"))

    @property
    def rubric(self) -> Rubric | None:
        """The criteria or instruction that this judge was given, if any."""
        return self.aspect or (None if self.criteria is None else tuple(self.criteria))

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the task that come from the call, the required ones first."""
        if self.aspect is not None:
            return "source", "candidate", "context", "fact", "reference"
        return "question", "answer_1", "answer_2", "context", "reference"

    @property
    def required(self) -> tuple[str, ...]:
        """The fields that a task must have."""
        if self.aspect is None:
            return "question", "answer_1", "answer_2"
        needed = [name for name in self.fields if name in self.aspect.needed_texts()]
        return (*needed, "candidate")

    def task(self, given: Mapping[str, Any]) -> JudgedTask:
        """Make the task from the arguments of an evaluator.

        Raises:
            UsageError: an argument is unknown, missing, empty or ambiguous, or cannot be shown; the
                message names it.
        """
        given = self._in_our_names(given)
        self._check_names(given)
        return _Call(
            self, {name: value for name, value in given.items() if name not in self.ignore}
        ).task()

    def made(
        self, texts: Mapping[str, Any], aspect: Aspect | None = None
    ) -> ScoreTask | CompareTask:
        """Make the task from its texts and media."""
        kind = "score" if self.aspect is not None else "compare"
        given = {"kind": kind, **texts, "aspect": aspect or self.aspect, "criteria": self.criteria}
        return parse_task({name: value for name, value in given.items() if value is not None})

    def _in_our_names(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments, with other libraries' names replaced by the names used here.

        Raises:
            UsageError: an argument is given under two names.
        """
        in_mapping = [path.partition(".")[0] for path in self.mapping.values()]
        own = {*ARGUMENTS, *self.fields, *in_mapping, *self.variables, *self.ignore}
        # Arguments of the signature are None if the caller omits them.
        named = {
            name: value for name, value in given.items() if name in own or name not in PEER_NAMES
        }
        source_of = {name: name for name, value in named.items() if not is_absent(value)}
        for name, value in given.items():
            argument = PEER_NAMES.get(name)
            if name in named or argument is None or value is None:
                continue
            if argument in source_of:
                raise UsageError(
                    f"{source_of[argument]} and {name} are both given: give one of them"
                )
            named[argument] = value
            source_of[argument] = name
        return named

    def _check_names(self, given: Mapping[str, Any]) -> None:
        """Refuse an argument that is not used anywhere."""
        in_mapping = (path.partition(".")[0] for path in self.mapping.values())
        known = [*ARGUMENTS, *self.fields, "media", *in_mapping, *self.variables]
        for name, value in given.items():
            if value is not None and name not in (*known, *_FROM_LANGSMITH, *self.ignore):
                raise UsageError(
                    f"unknown argument {name!r}; a call takes {listed(known, name)}; "
                    f"to leave it out, create the judge with ignore=[{name!r}]"
                )


class _Call:
    """Finds the texts of one task in the arguments of a call."""

    def __init__(self, maker: TaskMaker, given: Mapping[str, Any]) -> None:
        self.maker = maker
        self.given = dict(given)
        if maker.named is not None:
            # Arguments that the judge's prompt does not name are not shown.
            self.given = {
                n: value for n, value in given.items() if n not in ARGUMENTS or n in maker.named
            }
            # openevals accepts an empty text if a prompt names a missing reference.
            blank = [
                name for name in ("reference_outputs", "context") if self.given.get(name) == ""
            ]
            self.given |= dict.fromkeys(blank, "(none)")
        self.media: Media = dict(given.get("media") or {})
        self.texts: dict[str, str] = {}
        self.shown: dict[str, str] = {}
        # A value that a mapping takes from an argument is not shown again with the rest of the
        # argument.
        self.narrowed: dict[str, set[str]] = {}
        for path in maker.mapping.values():
            argument, _, rest = path.partition(".")
            self.narrowed.setdefault(argument, set()).add(rest)

    def task(self) -> JudgedTask:
        """Make the task."""
        for name in self.maker.fields:
            if name in self.maker.mapping:
                path = self.maker.mapping[name]
                self._put(name, _look_up(path, self.given), path)
            elif not is_absent(self.given.get(name)) and name not in ARGUMENTS:
                self._put_argument(name)
        aspect = None
        if self.maker.aspect is None:
            self._compare()
        else:
            aspect = self._rate(self.maker.aspect)
        self._add_to_context()
        self._check_all_used()
        return JudgedTask(self.maker.made({**self.texts, "media": self.media}, aspect), self.shown)

    # Ratings

    def _rate(self, aspect: Aspect) -> Aspect:
        """Find the texts of a rating, and return the aspect.

        A rating of inputs needs no source.
        """
        self._take_keys_of_inputs()
        for name in ("reference", "context"):
            self._put_default(name)
        inputs = self._rest("inputs")
        outputs = self._rest("outputs")
        if "candidate" not in self.texts and is_absent(outputs):
            return self._rate_inputs(aspect, inputs)
        needs_source = "source" in aspect.needed_texts() and "source" not in self.texts
        if "candidate" not in self.texts and needs_source and is_absent(inputs):
            self._split(outputs)
        if not is_absent(inputs):
            self._put_default("source")
        self._put_default("candidate")
        self._require(*self.maker.required)
        return aspect

    def _rate_inputs(self, aspect: Aspect, inputs: Any) -> Aspect:
        """Rate the inputs, or the context retrieved for them, if there are no outputs."""
        candidate = "context" if "context" in self.texts else "inputs"
        mentioned = self._mentioned_output(aspect)
        if mentioned:
            raise UsageError(
                f"outputs is missing, but the criteria of {aspect.name} "
                f"mention it ({mentioned!r}){_hint('candidate')}"
            )
        if candidate == "context":
            self.texts["candidate"] = self.texts.pop("context")
            self.shown["candidate"] = self.shown.pop("context")
            self._put_default("source")
            self._require(*self.maker.required)
            return aspect
        if is_absent(inputs):
            raise UsageError(
                f"outputs is missing: this judge takes its candidate from there{_hint('candidate')}"
            )
        self._put("candidate", inputs, "inputs")
        # Words that refer to a source mean the inputs, which are rated.
        needs = tuple(name for name in aspect.needed_texts() if name != "source")
        return aspect.model_copy(update={"needs": needs})

    def _mentioned_output(self, aspect: Aspect) -> str | None:
        """Return the word in the prompt or the criteria that refers to a model's output."""
        if self.maker.named is not None:
            return "outputs" if "outputs" in self.maker.named else None
        found = _OUTPUT_WORDS.search("\n".join((aspect.criteria, *aspect.steps)))
        return found[0] if found else None

    def _split(self, outputs: Any) -> None:
        """Take the source and the candidate from one conversation without leaving anything out."""
        messages = outputs
        where = "outputs"
        if isinstance(outputs, Mapping) and [*outputs] == [MESSAGES]:
            messages = outputs[MESSAGES]
            where = f"outputs.{MESSAGES}"
        if not is_conversation(messages):
            return
        remedy = _remedy("candidate").replace("{where}", f"{where}.-1")
        entries = read_conversation(messages, where, remedy, self.media)
        self.texts["source"], self.texts["candidate"] = asked_and_answered(entries)
        self.shown |= {"source": where, "candidate": where}

    def _take_keys_of_inputs(self) -> None:
        inputs = self.given.get("inputs")
        for name in _KEYS_OF_INPUTS:
            free = (
                name not in self.texts
                and is_absent(self.given.get(name))
                and "inputs" not in self.narrowed
            )
            if (
                free
                and isinstance(inputs, Mapping)
                and len(inputs) > 1
                and not is_absent(inputs.get(name))
            ):
                self._put(name, inputs[name], f"inputs.{name}")
                inputs = {key: value for key, value in inputs.items() if key != name}
                self.given["inputs"] = inputs

    # Comparisons

    def _compare(self) -> None:
        for name in ("question", "context", "reference"):
            self._put_default(name)
        outputs = self._rest("outputs")
        for name, place in (("answer_1", 0), ("answer_2", 1)):
            if name in self.texts:
                continue
            if isinstance(outputs, Mapping) and outputs.keys() == {"answer_1", "answer_2"}:
                self._put(name, outputs[name], f"outputs.{name}")
            elif isinstance(outputs, list | tuple) and len(outputs) == 2:
                self._put(name, outputs[place], f"outputs.{place}")
            else:
                raise UsageError(
                    "outputs must be a list of the two outputs to compare, got "
                    f"{shortened(outputs)}; to rate one output, name an aspect: "
                    "create_judge(..., aspect=...)"
                )
        self._require("question")

    # Both

    def _put_default(self, name: str) -> None:
        """Fill a field of the task from its default argument, if that is given."""
        argument = _DEFAULTS[name]
        if name not in self.texts and not is_absent(rest := self._rest(argument)):
            self._put(name, rest, argument)

    def _put_argument(self, name: str) -> None:
        """Fill a field of the task from the argument with its own name."""
        argument = _DEFAULTS.get(name, "outputs" if name.startswith("answer_") else name)
        if argument != name and not is_absent(self._rest(argument)) and argument != "outputs":
            raise UsageError(
                f"{name} and {argument} are both given for the {name}: give one of them"
            )
        self._put(name, self.given[name], name)

    def _put(self, name: str, value: Any, where: str) -> None:
        try:
            self.texts[name] = text_of(value, where, self.media, _remedy(name))
        except UsageError as error:
            if str(error).endswith(" is empty"):
                raise UsageError(f"{error}: there is no {name} to judge") from None
            raise
        self.shown[name] = where

    def _rest(self, argument: str) -> Any:
        """Return the part of an argument that a mapping does not use."""
        value = self.given.get(argument)
        taken = self.narrowed.get(argument, set())
        if "" in taken:
            return None
        if taken and isinstance(value, Mapping):
            return {key: inner for key, inner in value.items() if str(key) not in taken}
        return value

    def _add_to_context(self) -> None:
        """Add attachments and the variables of a prompt to the context."""
        parts = [self.texts["context"]] if "context" in self.texts else []
        for name in self.maker.variables:
            if is_absent(self.given.get(name)):
                raise UsageError(f"{name} is missing, but the judge's prompt names it")
            parts.append(f"{name}:\n{text_of(self.given[name], name, self.media)}")
            self.shown[name] = name
        attachments = self.given.get("attachments")
        if not is_absent(attachments):
            parts.append(add_attachments(attachments, self.media))
            self.shown["attachments"] = "attachments"
        elif self.maker.named is not None and "attachments" in self.maker.named:
            raise UsageError("attachments is missing, but the judge's prompt names it")
        if parts:
            self.texts["context"] = "\n\n".join(parts)

    def _require(self, *names: str) -> None:
        for name in names:
            if name not in self.texts:
                argument = _DEFAULTS.get(name, f"inputs.{name}")
                why = ""
                needed = {} if self.maker.aspect is None else self.maker.aspect.needed_texts()
                if self.maker.aspect is not None and (word := needed.get(name)):
                    why = f", and the criteria of {self.maker.aspect.name} mention it ({word!r})"
                raise UsageError(
                    f"{argument} is missing: this judge takes its {name} from there{why}{_hint(name)}"
                )

    def _check_all_used(self) -> None:
        """Refuse an argument with a value that no field of the task uses."""
        used = {where.partition(".")[0] for where in self.shown.values()}
        for name in ARGUMENTS:
            if (
                name not in used
                and name not in self.narrowed
                and not is_absent(self.given.get(name))
            ):
                raise UsageError(
                    f"{name} is given, but this judge has no place for it: "
                    f"leave it out, or waive it with create_judge(..., ignore=[{name!r}])"
                )


def _remedy(name: str) -> str:
    hint = f'such as variable_mapping={{"{name}": "{{where}}"}}'
    return f"pass the text that is to be judged, or name where it is, {hint}"


def _hint(name: str) -> str:
    path = _EXAMPLES.get(name, "outputs.draft")
    return f'; to take it from elsewhere, set variable_mapping, such as {{"{name}": "{path}"}}'


def _look_up(path: str, given: Mapping[str, Any]) -> Any:
    """Return the value at a path such as ``outputs.messages.0.content``."""
    try:
        return look_up(path, given)
    except PathError as error:
        has = f"; it has {', '.join(error.known)}" if error.known else ""
        raise UsageError(f"{error.at} is missing, but variable_mapping names {path}{has}") from None
