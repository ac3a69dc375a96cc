"""Try a model in a few cheap calls and say what jurygraph will use of it: the command ``jurygraph check-model``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer
from langchain_core.messages import HumanMessage, SystemMessage
from rich.table import Table
from rich.text import Text

from ...nodes.agent_runtime import read
from ...nodes.models import prices, resolver
from ...nodes.models.call import Call, Reply, UnsupportedParameterError
from ...nodes.models.capabilities import FORM_WORDS, LOGPROBS, SEVERAL
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.models.retry import RetryPolicy, call_with_retry, with_timeout
from ...nodes.models.send import attempt
from ...nodes.output_schemas import OutputSchema, ScoreSchema
from ...state.errors import ModelCallError, ReplyError
from ...state.settings import ModelSpec
from ...state.usage import NO_USAGE, Usage
from .runtime import ALL_JUDGED, BAD_USAGE, console, interruptible, run_async

RETRY_POLICY = RetryPolicy(attempts=3, timeout=60.0)
"""Fewer attempts than in a run, for somebody waits at the screen."""

FORM = ScoreSchema(1, 5)
SYSTEM = "You rate short texts."
ASK = (
    "How fluent is this sentence, from 1 (broken) to 5 (faultless)? Give one short reason.\n\n"
    "The ferry leaves the harbour at noon.\n\n"
)
IN_JSON = "Answer in JSON: first `reasoning`, one short reason, then `score`, a number from 1 to 5."
IN_WORDS = "Close with one line of this form, with your number from 1 to 5 in it:\nScore: <number>"
COUNT = "Write the numbers from 1 to 500 as words, one a line, and nothing else."
SHORT, PADDING = 16, 300
"""The limit in tokens at which a long reply must be cut off; lines of text that fill more than the shortest prompt that
providers cache (1,024 tokens, with some models 2,048)."""


@dataclass
class _Trial:
    """Holds a model with what came of the calls to it."""

    model: LoadedModel
    found: list[tuple[str, bool, str]] = field(default_factory=list)
    usage: Usage = NO_USAGE

    def note(self, what: str, works: bool, words: str) -> None:
        """Keep what was found out about one thing."""
        self.found.append((what, works, words))

    async def ask(
        self,
        words: str,
        form: OutputSchema | None = None,
        parameters: Mapping[str, Any] | None = None,
        model: LoadedModel | None = None,
        repeated: tuple[int, ...] = (),
    ) -> Reply:
        """Make a call, and add up what it takes."""
        messages = [SystemMessage(SYSTEM), HumanMessage(words)]
        schema = form.schema() if form else None
        about = {"agent": "check", "role": "check", "round": 0}
        call = Call(model or self.model, messages, schema, about, parameters or {}, repeated)
        reply = await call_with_retry(call, with_timeout(attempt, RETRY_POLICY.timeout), RETRY_POLICY)
        self.usage += reply.usage
        return reply

    @property
    def is_usable(self) -> bool:
        """Whether a score was read from a reply, in JSON or in words."""
        return any(works for what, works, _ in self.found if what in ("JSON", "words"))


def check_model(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A model as in `run --model`, such as openai:gpt-4o-mini.")
    ],
) -> None:
    """Try a model in about eight cheap calls, and print what will be used of it.

    Exit codes: 0 judges can use it, 2 they cannot, or no such model.
    """
    spec = ModelSpec.parse(name)
    resolver.check(spec)
    if spec.name == "offline":
        console().print("offline: no language model; it answers by word counts, and needs no check")
        raise typer.Exit(ALL_JUDGED)
    with interruptible("interrupted; nothing was kept"):
        trial = run_async(lambda: _tried(spec))
    _print(trial)
    raise typer.Exit(ALL_JUDGED if trial.is_usable else BAD_USAGE)


async def _tried(spec: ModelSpec) -> _Trial:
    """Make all calls; a failure of the plainest one ends the trial, since all others would fail as well."""
    model = await asyncio.to_thread(resolver.load, spec, asyncio.get_running_loop())
    trial = _Trial(model.tuned(0.0 if spec.temperature is None else None, None))
    for check in (_words, _json, _logprobs, _several, _length, _cache):
        try:
            await check(trial)
        except UnsupportedParameterError as error:
            trial.note(*_WITHOUT[error.parameter])
        except (ModelCallError, ReplyError) as error:
            trial.note(check.__name__.strip("_"), False, str(error))
            if check is _words and isinstance(error, ModelCallError):
                break
    _price(trial)
    return trial


async def _words(trial: _Trial) -> None:
    _, score = read(FORM, await trial.ask(ASK + IN_WORDS))
    trial.note("words", True, f"a score was read ({score:g})")


async def _json(trial: _Trial) -> None:
    if not trial.model.takes_structure():
        trial.note("JSON", False, "its client cannot ask for it: replies are asked for in words")
        return
    _, score = read(FORM, await trial.ask(ASK + IN_JSON, FORM))
    form = trial.model.form
    trial.note("JSON", form != "text", f"asked for as {FORM_WORDS[form]}; a score was read ({score:g})")


_WITHOUT = {
    LOGPROBS: ("log-probabilities", False, "not given: geval takes samples instead"),
    SEVERAL: ("n", False, "not taken: each sample is a request of its own"),
}


async def _logprobs(trial: _Trial) -> None:
    if not trial.model.gives(LOGPROBS):
        trial.note(*_WITHOUT[LOGPROBS])
        return
    reply = await trial.ask(ASK + IN_WORDS, parameters={LOGPROBS: True, "top_logprobs": 5})
    told = (
        "given: geval weights scores by them"
        if reply.tokens
        else "asked for and not given: geval takes samples"
    )
    trial.note("log-probabilities", bool(reply.tokens), told)


async def _several(trial: _Trial) -> None:
    if not trial.model.gives(SEVERAL):
        trial.note(*_WITHOUT[SEVERAL])
        return
    reply = await trial.ask(ASK + IN_WORDS, parameters={SEVERAL: 2, "temperature": 1.0})
    taken = len(reply.others) == 1
    told = "several replies to one request" if taken else "ignored: each sample is a request of its own"
    trial.note("n", taken, told)


async def _length(trial: _Trial) -> None:
    limited = trial.model.tuned(None, SHORT)
    reply = await trial.ask(COUNT, model=limited)
    if reply.cut_off:
        trial.note("length limit", True, "a reply that is cut off is known as such")
    else:
        told = f"max_tokens={SHORT} was not kept, or not told: set a limit at the server"
        trial.note("length limit", False, told)


async def _cache(trial: _Trial) -> None:
    prefix = "\n".join(f"{line}. The ferry leaves the harbour at noon." for line in range(PADDING))
    for _ in range(2):
        form = FORM if trial.model.takes_structure() else None
        reply = await trial.ask(f"{prefix}\n\n{IN_WORDS}", form, repeated=(len(prefix),))
    cached, sent = reply.usage.cached_input_tokens, reply.usage.input_tokens
    told = (
        f"{cached:,} of {sent:,} tokens of a repeated prompt"
        if cached
        else "a repeated prompt was paid in full"
    )
    trial.note("prompt cache", cached > 0, told)


def _price(trial: _Trial) -> None:
    known = prices.is_priced(trial.model.label)
    cost = trial.usage.cost_usd
    if not known:
        told = "not known: give it with ?price_in=...&price_out=..., or --max-cost cannot be used"
    elif cost is None:
        told = "known, but the replies do not say what they took: --max-cost counts estimates"
    else:
        told = f"known; this check took {trial.usage.calls} calls and ${cost:.4f}"
    trial.note("price", known and cost is not None, told)


def _print(trial: _Trial) -> None:
    table = Table("", "checked", "what was found", title=trial.model.label, title_justify="left")
    for what, works, words in trial.found:
        table.add_row("yes" if works else "no", what, Text(words, overflow="fold"))
    console().print(table)
    for warning in trial.model.warnings:
        console().print(Text(f"warning: {warning}"), soft_wrap=True)
    if not trial.is_usable:
        console().print(
            Text("No judge can use this model: no score was read from its replies."), soft_wrap=True
        )
        return
    form = FORM_WORDS[trial.model.form] if trial.model.takes_structure() else "words"
    console().print(Text(f"Judges will ask this model for {form}."), soft_wrap=True)
