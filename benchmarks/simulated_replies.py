"""Make the simulated provider's replies: a pure function of the request.

So the order of calls changes nothing. A request's *digest* represents model, messages and schema.
It chooses numbers, words and votes. The form of a reply is found as by a model: in the JSON schema
of the request, else in the instructions of the last message.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal

import orjson

Critic = Literal["objects", "agrees", "mixed"]
"""The course of a debate: never NO ISSUE, at once, or in one of four rounds."""

_SPOKEN = (
    "harbour winter council bridge report river measured evening before nobody school reopened costs "
    "although minister several between letter northern because claims support detail written clearly "
    "seldom argued summary missing further garden station morning engine careful village answer market "
    "window farmer paper silver mountain question weather island kitchen traffic library doctor music "
    "shadow journey picture number copper signal corner ferry lantern teacher valley copied painted"
)
WORDS = tuple(_SPOKEN.split())
"""Sixty-four of them: six bits of a digest are a word."""


@dataclass(frozen=True)
class Manner:
    """The length of replies, and how the Critic ends debates.

    Attributes:
        words: words of each text in a reply.
        critic: whether booleans are true, and whether a text reply contains NO ISSUE.
        tokens: the number of tokens with log-probabilities, if requested.
    """

    words: int = 80
    critic: Critic = "objects"
    tokens: int = 64


@dataclass(frozen=True, slots=True)
class Asked:
    """The relevant parts of a request."""

    digest: bytes
    model: str
    schema: Mapping[str, Any] | None
    tool: str | None
    own: str
    characters: int
    choices: int
    likely: int


def read_request(body: bytes) -> Asked:
    """Read a chat completion's request.

    Raises:
        ValueError: it is none.
    """
    request = orjson.loads(body)
    if not isinstance(request, dict) or not isinstance(messages := request.get("messages"), list):
        raise ValueError("the request has no messages")
    schema, tool = _schema(request)
    model = str(request.get("model"))
    whole = orjson.dumps([model, messages, schema], option=orjson.OPT_SORT_KEYS)
    return Asked(
        digest=blake2b(whole, digest_size=16).digest(),
        model=model,
        schema=schema,
        tool=tool,
        own=_text(messages[-1].get("content"))[-_TAIL:].rpartition("<<<end")[2],
        characters=len(whole),
        choices=int(request.get("n") or 1),
        likely=int(request.get("top_logprobs") or 0) if request.get("logprobs") else 0,
    )


def reply_to(asked: Asked, manner: Manner) -> bytes:
    """The body of the chat completion."""
    choices = [_choice(asked, manner, at) for at in range(asked.choices)]
    written = sum(len(text) for text, _ in choices)
    prompt = asked.characters // 4
    completion = written // 4 + 1
    cached = prompt // 256 * 128 if prompt >= 1024 else 0
    return orjson.dumps(
        {
            "id": f"chatcmpl-{asked.digest.hex()}",
            "object": "chat.completion",
            "created": 1700000000,
            "model": asked.model,
            "choices": [choice for _, choice in choices],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
                "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
            },
            "service_tier": "default",
            "system_fingerprint": "fp_simulated",
        }
    )


_TAIL = 900
"""Characters at the end of the last message that contain the form of the reply; an agent's own part
comes after the last quoted text."""


def _schema(request: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, str | None]:
    """Return the JSON schema of the reply, and the function whose arguments it is to be."""
    if tools := request.get("tools"):
        function = tools[0]["function"]
        return function["parameters"], function["name"]
    wanted = request.get("response_format") or {}
    return (
        (wanted["json_schema"]["schema"], None)
        if wanted.get("type") == "json_schema"
        else (None, None)
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or ())


def _choice(asked: Asked, manner: Manner, at: int) -> tuple[str, dict[str, Any]]:
    digest = (
        asked.digest
        if at == 0
        else blake2b(asked.digest + bytes([at % 256]), digest_size=16).digest()
    )
    chance = _Chance(digest)
    content = (
        _asked_for(_form(asked.own), chance, manner)
        if asked.schema is None
        else orjson.dumps(_filled(asked.schema, chance, manner)).decode()
    )
    message: dict[str, Any] = {
        "role": "assistant",
        "content": content,
        "refusal": None,
        "annotations": [],
    }
    if asked.tool is not None:
        function = {"name": asked.tool, "arguments": content}
        call = {"id": f"call_{digest.hex()}", "type": "function", "function": function}
        message |= {"content": None, "tool_calls": [call]}
    logprobs = None
    # Of a reply in text, or in a schema that is one whole number.
    if asked.likely and (asked.schema is None or content.isdigit()):
        first = content.partition(" ")[0] or " "
        rest = manner.tokens - 1
        message["content"] = first + " " * rest
        logprobs = {
            "content": [_token(first, asked.likely), *[_blank(asked.likely)] * rest],
            "refusal": None,
        }
    return content, {"index": at, "message": message, "logprobs": logprobs, "finish_reason": "stop"}


class _Chance:
    """A sequence of decisions by a digest."""

    __slots__ = ("_left",)

    def __init__(self, digest: bytes) -> None:
        self._left = int.from_bytes(digest)

    def below(self, limit: int) -> int:
        """A number from 0 on."""
        self._left, chosen = divmod(self._left, limit)
        return chosen


# Forms

_SCALE = re.compile(r"(-?\d+(?:\.\d+)?) to (-?\d+(?:\.\d+)?)")
_BLANK_LINE = re.compile(r"^(.*): <number>$", re.MULTILINE)


def _filled(schema: Mapping[str, Any], chance: _Chance, manner: Manner) -> Any:
    """A value that the schema allows."""
    if "enum" in schema:
        return schema["enum"][chance.below(len(schema["enum"]))]
    match schema.get("type"):
        case "object":
            return {
                name: _filled(part, chance, manner) for name, part in schema["properties"].items()
            }
        case "array":
            return [_filled(schema["items"], chance, manner)]
        case "boolean":
            return _satisfied(chance, manner)
        case "number" | "integer":
            return _number(*_limits(schema), chance)
    return _words(chance, manner)


def _limits(schema: Mapping[str, Any]) -> tuple[float, float]:
    """A number's scale; strict schemas have it in the description."""
    low, high = _scale(schema.get("description", ""))
    return schema.get("minimum", low), schema.get("maximum", high)


_Kind = Literal["number", "list", "critique", "vote", "words"]


@dataclass(frozen=True, slots=True)
class _Form:
    """The form at the end of a prompt: words, then these lines with a number each."""

    kind: _Kind
    low: float
    high: float
    labels: tuple[str, ...]


@lru_cache(maxsize=4096)
def _form(own: str) -> _Form:
    """Read an agent's instructions; they are the same for many items."""
    signs: dict[str, _Kind] = {
        "one whole number": "number",
        "numbered list": "list",
        "write NO ISSUE": "critique",
        "Vote: 1 or Vote: 2": "vote",
    }
    kind: _Kind = next((kind for sign, kind in signs.items() if sign in own), "words")
    return _Form(kind, *_scale(own), tuple(_BLANK_LINE.findall(own)))


def _asked_for(form: _Form, chance: _Chance, manner: Manner) -> str:
    """A text in the form that is asked for."""
    if form.kind == "number":
        return str(_number(form.low, form.high, chance))
    words = _words(chance, manner)
    match form.kind:
        case "list":
            return f"1. Read both texts.\n2. {words}\n3. Assign a score."
        case "critique":
            return f"{words}\nNO ISSUE" if _satisfied(chance, manner) else words
        case "vote":
            return f"{words}\nVote: {1 + chance.below(2)}"
    lines = [f"{label}: {_number(form.low, form.high, chance)}" for label in form.labels]
    return "\n".join([words, *lines])


def _satisfied(chance: _Chance, manner: Manner) -> bool:
    return manner.critic == "agrees" or (manner.critic == "mixed" and chance.below(4) == 0)


def _scale(text: str) -> tuple[float, float]:
    """The last scale that is spoken of."""
    found = _SCALE.findall(text)
    return (float(found[-1][0]), float(found[-1][1])) if found else (1.0, 5.0)


def _number(low: float, high: float, chance: _Chance) -> int:
    first = math.ceil(low)
    return first + chance.below(max(1, math.floor(high) - first + 1))


def _words(chance: _Chance, manner: Manner) -> str:
    """Five words of the digest's own, and then one of a few texts."""
    own = " ".join(WORDS[chance.below(64)] for _ in range(5))
    return f"As to {own}: {_prose(chance.below(16), manner.words)}"


_PROSE: dict[tuple[int, int], str] = {}


def _prose(number: int, words: int) -> str:
    if (text := _PROSE.get((number, words))) is None:
        text = _PROSE[number, words] = prose(f"reply {number}", words)
    return text


def prose(seed: str, words: int) -> str:
    """Return this many generated words in sentences; each seed gives another text.

    >>> prose("a", 12) == prose("a", 12), prose("a", 12) == prose("b", 12), len(prose("a", 12).split())
    (True, False, 12)
    """
    chance = random.Random(seed)
    chosen = [chance.choice(WORDS) for _ in range(words)]
    sentences = [" ".join(chosen[at : at + 9]).capitalize() for at in range(0, words, 9)]
    return ". ".join(sentences) + "."


# Log-probabilities

_RENDERED: dict[tuple[str, int], orjson.Fragment] = {}


def _blank(likely: int) -> orjson.Fragment:
    return _token(" ", likely)


def _token(token: str, likely: int) -> orjson.Fragment:
    """Return a token with its likely alternatives; rendered once for each token."""
    if (token, likely) not in _RENDERED:
        others = [text for text in (*"12345678", *WORDS) if text != token]
        ranked = [_likely(text, rank) for rank, text in enumerate([token, *others][:likely])]
        _RENDERED[token, likely] = orjson.Fragment(
            orjson.dumps({**ranked[0], "top_logprobs": ranked})
        )
    return _RENDERED[token, likely]


def _likely(text: str, rank: int) -> dict[str, Any]:
    return {"token": text, "logprob": -0.4 - 1.1 * rank, "bytes": list(text.encode())}
