"""Read the layouts in which tools and benchmarks publish ratings and comparisons, row by row.

Each layout is a record in ``LAYOUTS``: the columns that identify it, and a function from a row to
the fields of an item. To add a layout, write the function and its record. The column names are the
ones that the tools write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ...state.aspects import ASPECTS
from ...state.errors import DataError, UsageError
from . import mqm
from .files import Row, digest_of
from .paths import find

Fields = dict[str, Any]
Raw = Mapping[str, Any]


@dataclass(frozen=True)
class Layout:
    """A way to read the rows of one kind of file.

    Attributes:
        name: the name in messages.
        needs: the paths that rows of this layout have.
        uses: the columns that ``fields`` replaces.
        fields: returns the fields of an item from a row; columns set to ``None`` are left out.
        unless: columns that exclude the layout.
        note: a fact that a reader should know.
        has: a further condition in addition to ``needs``.
        gather: makes items from all rows, in place of ``fields``, if several rows are about one
            item. Their annotators are known, so items with equal texts are not merged.
    """

    name: str
    needs: tuple[str, ...]
    uses: tuple[str, ...]
    fields: Callable[[Raw], Fields] = dict
    unless: tuple[str, ...] = ()
    note: str = ""
    has: Callable[[Raw], bool] | None = None
    gather: Callable[[Iterable[Row], str], Iterator[Row]] | None = None

    def matches(self, rows: Sequence[Raw]) -> bool:
        """Return whether most rows have the layout and none is excluded; others are errors."""
        alike = sum(not self._missing(row) and (self.has is None or self.has(row)) for row in rows)
        others = any(name in row for row in rows for name in self.unless)
        return bool(rows) and 2 * alike > len(rows) and not others

    def _missing(self, row: Raw) -> list[str]:
        return [path for path in self.needs if find(path, row) is None]

    def applied(self, rows: Iterable[Row], where: str) -> Iterator[Row]:
        """Yield rows with the fields of items; ``where`` and the row's number are for messages.

        Raises:
            DataError: a row that does not match the layout.
        """
        if self.gather:
            yield from self.gather(rows, where)
            return
        for number, row in rows:
            if missing := self._missing(row):
                problem = f"{missing[0]!r} is missing, which rows of {self.name} have"
                raise DataError(f"{where} {number}: {problem}; add it, or delete the row")
            try:
                fields = self.fields(row)
            except UsageError as error:
                raise DataError(f"{where} {number}: {error}") from error
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                problem = (
                    f"is not of the form that {self.name} has ({type(error).__name__}: {error})"
                )
                raise DataError(
                    f"{where} {number}: the row {problem}; correct it, or delete it"
                ) from error
            rest = {name: value for name, value in row.items() if name not in self.uses}
            yield (
                number,
                {name: value for name, value in (rest | fields).items() if value is not None},
            )

    @property
    def words(self) -> str:
        """The name of the layout and its note, for a notice."""
        return f"read as {self.name}" + (f" ({self.note})" if self.note else "")


def layouts_of(rows: Sequence[Row], where: str) -> list[Layout]:
    """Return the layouts of a table's first rows.

    Each layout is applied to the rows that the layouts before it return.
    """
    found = []
    for layout in LAYOUTS:
        if layout.matches([row for _, row in rows]):
            found.append(layout)
            rows = [*layout.applied(rows, where)]
    return found


def laid_out(rows: Iterable[Row], layouts: Sequence[Layout], where: str) -> Iterator[Row]:
    """Yield rows with the fields from their layouts; ``where`` is for messages."""
    for layout in layouts:
        rows = layout.applied(rows, where)
    yield from rows


def _is_conversation(value: Any) -> bool:
    """Return whether a value is a list of messages."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(turn, Mapping) and "content" in turn for turn in value)
    )


def _text(content: Any) -> str:
    """Return the text of a message; its content may be in parts."""
    if isinstance(content, list):
        return "\n".join(
            str(part.get("text", "")) for part in content if part.get("type", "text") == "text"
        )
    return str(content)


def _turns(conversation: Any, *roles: str) -> list[str]:
    return [_text(turn["content"]) for turn in conversation if turn.get("role") in roles]


# -- arenas


def _arena(row: Raw) -> Fields:
    first = row["conversation_a"]
    second = row["conversation_b"]
    return {
        "question": _turns(first, "system", "user"),
        "answer_1": _turns(first, "assistant"),
        "answer_2": _turns(second, "assistant"),
        "model_1": row.get("model_a"),
        "model_2": row.get("model_b"),
        "human": row.get("winner"),
        # An expert in MT-Bench's votes, the user in an arena.
        "annotator": row.get("judge"),
        "group": row.get("question_id"),
    }


def _one_hot(row: Raw) -> Fields:
    winners = {"winner_model_a": "1", "winner_model_b": "2", "winner_tie": "tie"}
    chosen = [winner for name, winner in winners.items() if str(row.get(name)) in _TRUE]
    if len(chosen) != 1:
        raise UsageError(
            f"{len(chosen)} of the columns {', '.join(winners)} are 1, and one must be"
        )
    texts = {
        name: _turn_list(row[name])
        for name in ("prompt", "response_a", "response_b")
        if name in row
    }
    return {**texts, "human": chosen[0]}


def _turn_list(text: Any) -> Any:
    """Return the turns of a text that is a list, also as JSON; a model's turn may be missing."""
    turns = text
    if isinstance(text, str) and text.lstrip().startswith("["):
        with suppress(ValueError):
            turns = json.loads(text)
    if isinstance(turns, list) and all(turn is None or isinstance(turn, str) for turn in turns):
        return [turn for turn in turns if turn is not None]
    return text


_TRUE = ("1", "1.0", "True", "true")


# -- preference sets


def _preference(row: Raw) -> Fields:
    prompt = row["prompt"]
    question = prompt if isinstance(prompt, list) else str(prompt)
    return _pair(question, _answer(row["chosen"]), _answer(row["rejected"]))


def _answer(text: Any) -> str:
    """Return an answer; the last turn, if it is a conversation."""
    if not isinstance(text, list):
        return str(text)
    if text[-1].get("role") not in (None, "assistant"):
        raise UsageError("a conversation ends with the user, so it has no answer; delete the row")
    return _text(text[-1]["content"])


def _pair(question: Any, chosen: str, rejected: str) -> Fields:
    """Return a pair of answers, in an order that does not depend on the choice."""
    first = int(digest_of(json.dumps(sorted([chosen, rejected])) + str(question)), 16) % 2 == 0
    answers = (chosen, rejected) if first else (rejected, chosen)
    return {
        "question": question,
        "answer_1": answers[0],
        "answer_2": answers[1],
        "human": "1" if first else "2",
    }


_SPEAKER = re.compile(
    r"""
    \s* \b (?P<role> Human | Assistant ) : \ ?     # the beginning of a turn, such as "Human: Why?"
    """,
    re.VERBOSE,
)
_TURN = re.compile(
    r"""
    (?: ^ | \n\n ) (?P<role> Human | Assistant ) : \ ?  # two line feeds stand before each turn, but not the first
    """,
    re.VERBOSE,
)


def _is_pair_of_conversations(row: Raw) -> bool:
    both = [row["chosen"], row["rejected"]]
    return all(map(_is_conversation, both)) or all(
        isinstance(text, str) and _SPEAKER.match(text) for text in both
    )


def _messages(conversation: Any) -> list[dict[str, str]]:
    """Return the turns of a conversation or of a text such as "Human: Why? Assistant: Rain."."""
    if isinstance(conversation, list):
        return [
            {"role": str(turn["role"]), "content": _text(turn["content"])} for turn in conversation
        ]
    text = str(conversation).strip()
    starts = [*_TURN.finditer(text)]
    ends = [*(start.start() for start in starts[1:]), len(text)]
    roles = {"Human": "user", "Assistant": "assistant"}
    return [
        {"role": roles[start["role"]], "content": text[start.end() : end].strip()}
        for start, end in zip(starts, ends, strict=True)
    ]


def _pair_of_conversations(row: Raw) -> Fields:
    chosen = _messages(row["chosen"])
    rejected = _messages(row["rejected"])
    shared = 0
    while shared < min(len(chosen), len(rejected)) and chosen[shared] == rejected[shared]:
        shared += 1
    # If one conversation begins the other, its last answer is not part of the question.
    while (
        shared
        and chosen[shared - 1]["role"] == "assistant"
        and min(len(chosen), len(rejected)) == shared
    ):
        shared -= 1
    if not shared:
        raise UsageError(
            "the two conversations have no beginning in common, so there is no question; delete the row"
        )
    for name, turns in (("chosen", chosen), ("rejected", rejected)):
        if len(turns) == shared or turns[-1]["role"] != "assistant":
            raise UsageError(f"{name!r} ends with the user, so it has no answer; delete the row")
    question: Any = chosen[:shared]
    if shared == 1:
        question = question[0]["content"]
    return _pair(question, _rest(chosen[shared:]), _rest(rejected[shared:]))


def _rest(turns: Sequence[Mapping[str, str]]) -> str:
    """Return the end of a conversation: an answer, with any later turns of user and model."""
    if len(turns) == 1:
        return turns[0]["content"]
    return "\n\n".join(f"{turn['role'].capitalize()}: {turn['content']}" for turn in turns)


# -- tools that run models


def _langsmith_flat(row: Raw) -> Fields:
    """Return the fields of an experiment's row with columns such as ``inputs.question``."""
    nested: dict[str, dict[str, Any]] = {}
    used: Fields = {}
    for name, value in row.items():
        outer, dot, inner = name.partition(".")
        if dot and outer in ("inputs", "outputs", "reference"):
            nested.setdefault(outer, {})[inner] = value
            used[name] = None
    return used | _langsmith(nested)


def _langsmith(row: Raw) -> Fields:
    reference = row.get("reference_outputs")
    if reference is None:
        reference = row.get("reference")
    return {
        "source": _sole(row["inputs"]),
        "candidate": _sole(row["outputs"]),
        "reference": _sole(reference),
    }


def _sole(value: Any) -> Any:
    """Return the only text or messages of an object; anything else as indented JSON."""
    if value is None or isinstance(value, str) or _is_conversation(value):
        return value
    if isinstance(value, Mapping) and len(value) == 1:
        return _sole(next(iter(value.values())))
    return json.dumps(value, indent=2, ensure_ascii=False)


def _promptfoo(row: Raw) -> Fields:
    # A failed call has an error instead of an output.
    output = find("response.output", row)
    return {
        "source": row["prompt"]["raw"],
        "candidate": "" if output is None else _sole(output),
        "system": find("provider.id", row),
    }


_ATTACHMENT = "attachment://"


def _inspect(row: Raw) -> Fields:
    attachments = row.get("attachments") or {}

    def attached(value: Any) -> Any:
        """Insert long texts, which logs store once and refer to."""
        if isinstance(value, str) and value.startswith(_ATTACHMENT):
            return attachments[value.removeprefix(_ATTACHMENT)]
        if isinstance(value, Mapping):
            return {name: attached(inner) for name, inner in value.items()}
        return [*map(attached, value)] if isinstance(value, list) else value

    target = row.get("target")
    reference = "\n".join(map(str, target)) if isinstance(target, list) else target
    fields: Fields = {
        "id": f"{row['id']}-{row['epoch']}",
        "group": str(row["id"]),
        "reference": reference or None,
        "system": find("output.model", row),
    }
    messages = attached(row.get("messages") or [])
    if any(message.get("role") == "tool" for message in messages):
        # The judge of an agent also sees the results of its tools.
        return fields | {"messages": messages}
    asked = attached(row["input"])
    if choices := row.get("choices"):
        options = "\n".join(
            f"{chr(ord('A') + place)}) {choice}" for place, choice in enumerate(choices)
        )
        question = asked if isinstance(asked, str) else _text(asked[-1]["content"])
        asked = f"{question}\n\n{options}"
    # A sample that ended in an error has no answer.
    content = attached(find("output.choices.0.message.content", row) or "")
    return fields | {"source": asked, "candidate": _text(content)}


# -- tools for annotation


def _label_studio(row: Raw) -> Fields:
    said: dict[str, dict[str, Any]] = {}
    annotators: dict[str, None] = {}
    for annotation in row["annotations"]:
        if annotation.get("was_cancelled"):  # the annotator skipped the task
            continue
        by = annotation.get("completed_by", "")
        annotator = str(by.get("email") or by.get("id") if isinstance(by, Mapping) else by)
        annotators[annotator] = None
        for result in annotation.get("result", ()):
            label = _label_studio_value(result.get("value", {}))
            name = "winner" if result.get("type") == "pairwise" else str(result.get("from_name"))
            said.setdefault(name, {})[annotator] = label
    return {**row["data"], "id": row["id"], **_labelled(said, annotators)}


def _label_studio_value(value: Raw) -> Any:
    """Return the label of a result; its key is the name of the control in the tool."""
    if "selected" in value:  # the left or the right text
        return {"left": "1", "right": "2"}.get(value["selected"], value["selected"])
    label = next(
        (value[name] for name in ("rating", "number", "choices", "text") if name in value), None
    )
    return label[0] if isinstance(label, list) and len(label) == 1 else label


def _argilla(row: Raw) -> Fields:
    said: dict[str, dict[str, Any]] = {}
    annotators: dict[str, None] = {}
    for question, responses in row["responses"].items():
        for response in responses:
            annotator = str(response.get("user_id", ""))
            annotators[annotator] = None
            said.setdefault(question, {})[annotator] = response.get("value")
    return {**row["fields"], **_labelled(said, annotators)}


_RESPONSES = "responses"
_USERS = "responses.users"
_ARGILLA_ENDINGS = ("", ".responses", ".responses.users", ".responses.status")


def _argilla_questions(row: Raw) -> dict[str, list[tuple[str, Any]]]:
    """Return the responses of each user by question, for a record with questions as columns.

    A question has the columns ``quality.responses`` and ``quality.responses.users``; in earlier
    versions it has a column ``quality`` with a list of responses.
    """
    questions: dict[str, list[tuple[str, Any]]] = {}
    for name, value in row.items():
        if name.endswith(f".{_USERS}"):
            question = name.removesuffix(f".{_USERS}")
            questions[question] = _by_user(value, row.get(f"{question}.{_RESPONSES}"))
        elif isinstance(value, Mapping) and _USERS in value:
            questions[name] = _by_user(value[_USERS], value.get(_RESPONSES))
        elif isinstance(value, list) and value and all(_is_response(given) for given in value):
            submitted = [
                given for given in value if given.get("status", "submitted") == "submitted"
            ]
            questions[name] = [(str(given["user_id"]), given["value"]) for given in submitted]
    return questions


def _by_user(users: Any, values: Any) -> list[tuple[str, Any]]:
    return [*zip(map(str, users or ()), values or (), strict=True)]


def _is_response(given: Any) -> bool:
    return isinstance(given, Mapping) and {"user_id", "value"} <= given.keys()


def _argilla_flat(row: Raw) -> Fields:
    said: dict[str, dict[str, Any]] = {}
    annotators: dict[str, None] = {}
    for question, given in _argilla_questions(row).items():
        annotators.update(dict.fromkeys(user for user, _ in given))
        said[question] = dict(given)
    columns = [f"{question}{ending}" for question in said for ending in _ARGILLA_ENDINGS]
    return dict.fromkeys(columns) | _labelled(said, annotators)


def _alpaca_eval(row: Raw) -> Fields:
    preference = row["preference"]
    # 1 is the first output and 2 the second; judges give numbers in between. Earlier versions wrote
    # 0 for a tie.
    winner = "tie" if preference in (0, 1.5) else "1" if preference < 1.5 else "2"
    fields = {
        "question": row["instruction"],
        "answer_1": row["output_1"],
        "answer_2": row["output_2"],
    }
    models = {"model_1": row["generator_1"], "model_2": row["generator_2"]}
    return {**fields, **models, "human": winner, "annotator": str(row["annotator"])}


def _by_aspect(row: Raw) -> Fields:
    [column] = [name for name in _ASPECT_SCORES if name in row][:1]
    return {"human": {str(row["aspect"]).strip(): row[column]}}


_ASPECT_SCORES = ("rating", "score")


def _compared_on(row: Raw) -> Fields:
    return {"criteria": [str(row["aspect"])]}


_ASPECTS = {name.rpartition("/")[2] for name in ASPECTS}


def _labelled(said: Mapping[str, Mapping[str, Any]], annotators: Iterable[str]) -> Fields:
    """Return labels by question: an aspect, the winner, or a separate column."""
    order = [*annotators]
    fields: Fields = {"annotators": order} if order else {}
    for question, labels in said.items():
        listed = [labels.get(annotator) for annotator in order]
        if question in _ASPECTS:
            fields.setdefault("human", {})[question] = listed
        elif question in ("winner", "preference", "preferred"):
            fields["human"] = listed
        else:
            fields[question] = listed
    return fields


LAYOUTS: tuple[Layout, ...] = (
    Layout(
        "conversations of an arena",
        ("conversation_a.0.role", "conversation_b.0.role"),
        (
            "conversation_a",
            "conversation_b",
            "model_a",
            "model_b",
            "winner",
            "judge",
            "question_id",
        ),
        _arena,
    ),
    Layout(
        "winners of an arena, one column for each",
        ("winner_model_a", "winner_model_b"),
        ("winner_model_a", "winner_model_b", "winner_tie"),
        _one_hot,
    ),
    Layout(
        "a preference set",
        ("prompt", "chosen", "rejected"),
        ("prompt", "chosen", "rejected"),
        _preference,
        note="the chosen answer is answer 1 or 2 by a hash of the texts",
    ),
    Layout(
        "pairs of conversations",
        ("chosen", "rejected"),
        ("chosen", "rejected"),
        _pair_of_conversations,
        unless=("prompt", "question"),
        note="their common beginning is the question; the chosen answer is answer 1 or 2 by a hash of the texts",
        has=_is_pair_of_conversations,
    ),
    Layout(
        "errors marked in translations (MQM)",
        mqm.NEEDS,
        mqm.USES,
        unless=("candidate",),
        note="human.mqm is minus the sum of a rater's errors: major 5, minor 1, minor punctuation 0.1, "
        "no translation 25; rows of severity HOTW-test, which test the rater, are left out",
        gather=mqm.gathered,
    ),
    Layout(
        "annotations of AlpacaEval",
        (
            "instruction",
            "output_1",
            "output_2",
            "generator_1",
            "generator_2",
            "preference",
            "annotator",
        ),
        (
            "instruction",
            "output_1",
            "output_2",
            "generator_1",
            "generator_2",
            "preference",
            "annotator",
        ),
        _alpaca_eval,
        note="the label is the preference of the annotator, which may be a model: above 1.5 is answer 2",
    ),
    *(
        Layout(
            "one row for each aspect",
            ("aspect", column),
            ("aspect", column),
            _by_aspect,
            unless=("human", *_ASPECT_SCORES[:place]),
            note=f"the column {column!r} has the human score on the aspect",
        )
        for place, column in enumerate(_ASPECT_SCORES)
    ),
    Layout(
        "comparisons on an aspect",
        ("aspect", "winner"),
        ("aspect",),
        _compared_on,
        unless=("criteria", "rubric", "candidate"),
        note="the aspect is what the answers are compared on",
    ),
    Layout(
        "an export of Label Studio",
        ("data", "annotations"),
        ("data", "annotations"),
        _label_studio,
        unless=("source", "candidate"),
    ),
    Layout("an export of Argilla", ("fields", "responses"), ("fields", "responses"), _argilla),
    Layout(
        "records of Argilla",
        (),
        (),
        _argilla_flat,
        has=lambda row: bool(_argilla_questions(row)),
    ),
    Layout(
        "results of promptfoo",
        ("prompt.raw", "provider.id"),
        ("prompt", "response", "provider"),
        _promptfoo,
    ),
    Layout(
        "samples of a log of Inspect",
        ("id", "epoch", "input", "output.choices"),
        ("id", "epoch", "input", "choices", "output", "target", "messages", "attachments"),
        _inspect,
        note="each epoch is an item",
    ),
    Layout(
        "conversations of ragas",
        ("user_input.0.content",),
        ("user_input",),
        lambda row: {"messages": row["user_input"]},
        unless=("response", "candidate"),
    ),
    Layout(
        "runs of LangSmith",
        (),
        (),
        _langsmith_flat,
        has=lambda row: (
            {"inputs", "outputs"} <= {name.partition(".")[0] for name in row if "." in name}
        ),
    ),
    Layout(
        "runs of LangSmith",
        ("inputs", "outputs"),
        ("inputs", "outputs", "reference_outputs", "reference"),
        _langsmith,
        unless=("source", "candidate"),
    ),
)
"""The known layouts, in the order of the search."""
