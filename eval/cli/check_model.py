"""Try a model in a few cheap calls and report what it supports: ``jurygraph check-model``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import typer
from langchain_core.messages import HumanMessage, SystemMessage

from ...nodes.models import prices, resolver
from ...nodes.models.call import Call, Reply, UnsupportedParameterError
from ...nodes.models.capabilities import FORM_WORDS, LOGPROBS, SEVERAL
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.models.retry import RetryPolicy
from ...nodes.models.send import attempt, call_with_retry, with_timeout
from ...nodes.runtime.agent_runtime import read
from ...nodes.runtime.output_schemas import OutputSchema, ScoreSchema
from ...state.errors import ModelCallError, ReplyError
from ...state.settings import ModelSpec
from ...state.transcript import NO_USAGE, Usage
from .exit_codes import ExitCode
from .option_sets import argument
from .runtime import console, interruptible, run_async

RETRY_POLICY = RetryPolicy(attempts=3, timeout=60.0)
"""Fewer attempts than in a run, because a user is waiting."""

FORM = ScoreSchema(1, 5)
ASK = (
    "How fluent is this sentence, from 1 (broken) to 5 (faultless)? Give one short reason.\n\n"
    "The ferry leaves the harbour at noon.\n\n"
)
IN_JSON = "Answer in JSON: first `reasoning`, one short reason, then `score`, a number from 1 to 5."
IN_WORDS = "End with one line of this form, with your number from 1 to 5 in it:\nScore: <number>"
COUNT = "Write the numbers from 1 to 500 as words, one a line, and nothing else."
SHORT = 16
PADDING = 300
"""The tokens after which a long reply is cut off, and the lines of a prompt that is cached.

The lines exceed the shortest prompt that providers cache: 1,024 tokens, with some models 2,048.
"""


_Outcome = tuple[bool, str]
"""Whether a check passed, and its result in words."""


@dataclass
class _Trial:
    """A model, the outcome of each check, and the usage of the calls."""

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
        """Make a call, and add its usage to the total.

        Raises:
            UnsupportedParameterError: the client or the provider does not support a parameter.
        """
        for parameter in _WITHOUT.keys() & (parameters or {}):
            if not self.model.gives(parameter):
                raise UnsupportedParameterError(_WITHOUT[parameter], parameter)
        messages = [SystemMessage("You rate short texts."), HumanMessage(words)]
        schema = form.schema() if form else None
        about = {"agent": "check", "role": "check", "round": 0}
        call = Call(model or self.model, messages, schema, about, parameters or {}, repeated)
        reply = await call_with_retry(
            call, with_timeout(attempt, RETRY_POLICY.timeout), RETRY_POLICY
        )
        self.usage += reply.usage
        return reply


def check_model(
    name: str = argument("A model, named as in `run --model`, such as openai:gpt-4o-mini.", "NAME"),
) -> None:
    """Check with a few cheap calls what a model supports.

    Makes about eight calls, and prints what judges will use.

    Exit codes: 0 judges can use the model, 2 they cannot, or it does not exist.
    """
    spec = ModelSpec.parse(name)
    resolver.check(spec)
    if spec.name == "offline":
        console().print(
            "offline is not a language model: it answers by word counts and needs no check"
        )
        raise typer.Exit(ExitCode.ALL_JUDGED)
    with interruptible("interrupted; nothing was saved"):
        trial = run_async(lambda: _tried(spec))
    out = console()
    model = trial.model
    rows = [
        ("yes" if works else "no", name, words) for name, (works, words) in trial.outcomes.items()
    ]
    out.print_list(("", "checked", "what was found"), rows, model.label)
    for warning in model.warnings.values():
        out.print_line(f"Warning: {warning}")
    # A score was read from a reply, in JSON or in words.
    if any(trial.outcomes.get(name, (False,))[0] for name in ("JSON", "words")):
        form = FORM_WORDS[model.form] if model.form != "text" else "words"
        out.print_line(f"Judges will ask this model for {form}.")
        raise typer.Exit(ExitCode.ALL_JUDGED)
    out.print_line("No judge can use this model: no score could be read from its replies.")
    raise typer.Exit(ExitCode.BAD_USAGE)


async def _tried(spec: ModelSpec) -> _Trial:
    """Make all calls; if the plainest one fails, stop, because all others would fail as well."""
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
    cost = trial.usage.cost_usd
    price = False, "known, but replies do not report their tokens: --max-cost counts estimates"
    if not prices.is_priced(trial.model.label):
        price = (
            False,
            "unknown: to use --max-cost, add ?price_in=...&price_out=... to the model's name",
        )
    elif cost is not None:
        price = True, f"known; this check took {trial.usage.calls} calls and ${cost:.4f}"
    trial.outcomes["price"] = price
    return trial


async def _words(trial: _Trial) -> _Outcome:
    _, score = read(FORM, await trial.ask(ASK + IN_WORDS))
    return True, f"a score was read ({score:g})"


async def _json(trial: _Trial) -> _Outcome:
    if trial.model.form == "text":
        return False, "its client cannot request JSON: replies are requested in words"
    _, score = read(FORM, await trial.ask(ASK + IN_JSON, FORM))
    # The provider may have refused the first form.
    form = FORM_WORDS[trial.model.form]
    return form != FORM_WORDS["text"], f"requested as {form}; a score was read ({score:g})"


_WITHOUT = {
    LOGPROBS: "not supported: geval takes samples instead",
    SEVERAL: "not supported: each sample is a separate request",
}


async def _logprobs(trial: _Trial) -> _Outcome:
    reply = await trial.ask(ASK + IN_WORDS, parameters={LOGPROBS: True, "top_logprobs": 5})
    if reply.tokens:
        return True, "supported: geval weights scores by them"
    return False, "requested but not returned: geval takes samples instead"


async def _several(trial: _Trial) -> _Outcome:
    reply = await trial.ask(ASK + IN_WORDS, parameters={SEVERAL: 2, "temperature": 1.0})
    if len(reply.others) == 1:
        return True, "several replies to one request"
    return False, "ignored: each sample is a separate request"


async def _length(trial: _Trial) -> _Outcome:
    reply = await trial.ask(COUNT, model=trial.model.tuned(None, SHORT))
    if reply.cut_off:
        return True, "a reply that was cut off is reported as such"
    return (
        False,
        f"max_tokens={SHORT} was ignored, or the cut was not reported: set a limit on the server",
    )


async def _cache(trial: _Trial) -> _Outcome:
    prefix = "\n".join(f"{line}. The ferry leaves the harbour at noon." for line in range(PADDING))
    form = FORM if trial.model.form != "text" else None
    for _ in range(2):  # the first call fills the cache
        reply = await trial.ask(f"{prefix}\n\n{IN_WORDS}", form, repeated=(len(prefix),))
    cached = reply.usage.cached_input_tokens
    sent = reply.usage.input_tokens
    if cached:
        return True, f"{cached:,} of {sent:,} tokens of a repeated prompt came from the cache"
    return False, "a repeated prompt was billed in full"


CHECKS: Mapping[str, Callable[[_Trial], Awaitable[_Outcome]]] = {
    "words": _words,
    "JSON": _json,
    "log-probabilities": _logprobs,
    "n": _several,
    "length limit": _length,
    "prompt cache": _cache,
}
"""The checks, by their names in the table."""
