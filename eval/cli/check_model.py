"""Try a model in a few cheap calls and say what jurygraph will use of it: the command ``jurygraph check-model``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import typer
from langchain_core.messages import HumanMessage, SystemMessage

from ...nodes.agent_runtime import read
from ...nodes.models import prices, resolver
from ...nodes.models.call import Call, Reply, UnsupportedParameterError
from ...nodes.models.capabilities import FORM_WORDS, LOGPROBS, SEVERAL
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.models.retry import RetryPolicy
from ...nodes.models.send import attempt, call_with_retry, with_timeout
from ...nodes.output_schemas import OutputSchema, ScoreSchema
from ...state.errors import ModelCallError, ReplyError
from ...state.settings import ModelSpec
from ...state.usage import NO_USAGE, Usage
from ..tables import Grid, text_column
from .option_sets import argument
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
IN_WORDS = "End with one line of this form, with your number from 1 to 5 in it:\nScore: <number>"
COUNT = "Write the numbers from 1 to 500 as words, one a line, and nothing else."
SHORT, PADDING = 16, 300
"""The limit in tokens at which a long reply must be cut off; lines of text that fill more than the shortest prompt that
providers cache (1,024 tokens, with some models 2,048)."""


_Outcome = tuple[bool, str]
"""Whether a check went well, and what was found."""


@dataclass
class _Trial:
    """Holds a model with what came of each check of it, and what the calls took."""

    model: LoadedModel
    outcomes: dict[str, _Outcome] = field(default_factory=dict)
    usage: Usage = NO_USAGE

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
        return any(self.outcomes[name][0] for name in ("JSON", "words") if name in self.outcomes)


def check_model(
    name: str = argument("A model as in `run --model`, such as openai:gpt-4o-mini.", "NAME"),
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
    for name, check in CHECKS.items():
        try:
            trial.outcomes[name] = await check(trial)
        except UnsupportedParameterError as error:
            trial.outcomes[name] = (False, _WITHOUT[error.parameter])
        except (ModelCallError, ReplyError) as error:
            trial.outcomes[name] = (False, str(error))
            if name == "words" and isinstance(error, ModelCallError):
                break
    trial.outcomes["price"] = _price(trial)
    return trial


async def _words(trial: _Trial) -> _Outcome:
    _, score = read(FORM, await trial.ask(ASK + IN_WORDS))
    return True, f"a score was read ({score:g})"


async def _json(trial: _Trial) -> _Outcome:
    if trial.model.form == "text":
        return False, "its client cannot ask for it: replies are asked for in words"
    _, score = read(FORM, await trial.ask(ASK + IN_JSON, FORM))
    # The provider may have refused the form that was asked for first.
    form = FORM_WORDS[trial.model.form]
    return form != FORM_WORDS["text"], f"asked for as {form}; a score was read ({score:g})"


_WITHOUT = {
    LOGPROBS: "not given: geval takes samples instead",
    SEVERAL: "not taken: each sample is a request of its own",
}


async def _logprobs(trial: _Trial) -> _Outcome:
    if not trial.model.gives(LOGPROBS):
        return False, _WITHOUT[LOGPROBS]
    reply = await trial.ask(ASK + IN_WORDS, parameters={LOGPROBS: True, "top_logprobs": 5})
    if reply.tokens:
        return True, "given: geval weights scores by them"
    return False, "asked for and not given: geval takes samples"


async def _several(trial: _Trial) -> _Outcome:
    if not trial.model.gives(SEVERAL):
        return False, _WITHOUT[SEVERAL]
    reply = await trial.ask(ASK + IN_WORDS, parameters={SEVERAL: 2, "temperature": 1.0})
    if len(reply.others) == 1:
        return True, "several replies to one request"
    return False, "ignored: each sample is a request of its own"


async def _length(trial: _Trial) -> _Outcome:
    reply = await trial.ask(COUNT, model=trial.model.tuned(None, SHORT))
    if reply.cut_off:
        return True, "a reply that is cut off is known as such"
    return False, f"max_tokens={SHORT} was not kept, or not told: set a limit at the server"


async def _cache(trial: _Trial) -> _Outcome:
    prefix = "\n".join(f"{line}. The ferry leaves the harbour at noon." for line in range(PADDING))
    form = FORM if trial.model.form != "text" else None
    for _ in range(2):  # the first call fills the cache
        reply = await trial.ask(f"{prefix}\n\n{IN_WORDS}", form, repeated=(len(prefix),))
    cached, sent = reply.usage.cached_input_tokens, reply.usage.input_tokens
    if cached:
        return True, f"{cached:,} of {sent:,} tokens of a repeated prompt"
    return False, "a repeated prompt was paid in full"


CHECKS: Mapping[str, Callable[[_Trial], Awaitable[_Outcome]]] = {
    "words": _words,
    "JSON": _json,
    "log-probabilities": _logprobs,
    "n": _several,
    "length limit": _length,
    "prompt cache": _cache,
}
"""What is tried, by the name that the table has for it."""


def _price(trial: _Trial) -> _Outcome:
    if not prices.is_priced(trial.model.label):
        return False, ("not known: give it with ?price_in=...&price_out=..., or --max-cost cannot be used")
    cost = trial.usage.cost_usd
    if cost is None:
        return False, ("known, but the replies do not say what they took: --max-cost counts estimates")
    return True, f"known; this check took {trial.usage.calls} calls and ${cost:.4f}"


def _print(trial: _Trial) -> None:
    out = console()
    rows = [("yes" if works else "no", name, words) for name, (works, words) in trial.outcomes.items()]
    columns = map(text_column, ("", "checked", "what was found"))
    out.print_grids([Grid(trial.model.label, tuple(columns), tuple(rows))])
    for warning in trial.model.warnings:
        out.print_line(f"warning: {warning}")
    if not trial.is_usable:
        out.print_line("No judge can use this model: no score was read from its replies.")
        return
    form = FORM_WORDS[trial.model.form] if trial.model.form != "text" else "words"
    out.print_line(f"Judges will ask this model for {form}.")
