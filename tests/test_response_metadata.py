"""Test response metadata: the answering model, the usage, and its cost."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from genai_prices import Usage as Counts
from genai_prices import calc_price
from jurygraph.eval import evaluate
from jurygraph.eval.analysis import Study
from jurygraph.eval.cli.app import app
from jurygraph.eval.cli.progress import total_usage
from jurygraph.eval.report.first_screen import first_screens
from jurygraph.eval.run.calls.progress_counters import ProgressCounters
from jurygraph.nodes.models import prices, resolver
from jurygraph.nodes.models.responses import is_another, read_response
from jurygraph.state.settings import ModelSpec
from jurygraph.state.transcript import Usage
from langchain_core.messages import AIMessage
from typer.testing import CliRunner

from .loopback import Provider, Request, Text
from .loopback import Usage as Taken
from .loopback_debate import OPENAI
from .sample_data import write_lines

# The answering model: a dated version of the requested one is the same, another one is reported

SAME = [
    ("gpt-4o-mini", "gpt-4o-mini"), ("gpt-4o-mini", "gpt-4o-mini-2024-07-18"), ("gpt-4", "gpt-4-0613"),
    ("models/gemini-2.0-flash", "gemini-2.0-flash-001"), ("claude-sonnet-4-0", "claude-sonnet-4-20250514"),
    ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
    ("us.anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-3-5-sonnet-20240620"),
    ("openai/gpt-4o:free", "openai/gpt-4o"), ("llama3.1", "llama3.1:latest"),
    ("mistral-large-latest", "mistral-large-2411"), ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b-instruct"),
]  # fmt: skip
OTHERS = [
    ("gpt-4o", "gpt-4o-mini-2024-07-18"), ("gpt-4o", "gpt-3.5-turbo"), ("gpt-4", "gpt-4-turbo-2024-04-09"),
    ("claude-opus-4-1", "claude-sonnet-4-20250514"), ("gemini-2.5-pro", "gemini-2.5-flash"),
    ("llama3.1", "llama3.2:latest"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "served"), [*SAME, *OTHERS])
def test_versions_and_aliases_are_the_same_model_and_others_are_not(
    asked: str, served: str
) -> None:
    assert is_another(asked, served) is ((asked, served) in OTHERS)


@pytest.mark.parametrize("served", ["gpt-4o-mini-2024-07-18", "something-cheaper"])
def test_another_model_is_warned_of_and_recorded(
    provider: Provider, tmp_path: Path, served: str
) -> None:
    about = {"model": served, "system_fingerprint": "fp_1"}
    provider.play(by=lambda _: Text("Fine.\n\nScore: 3", about=about))
    is_other = served == "something-cheaper"
    options: Any = {"aspects": ["consistency"], "models": {"*": OPENAI}, "limit": 1}
    options |= {"settings": {"structured": "off"}, "out": tmp_path / "out"}
    for repeats in (1, 2):
        done = evaluate("single", "demo", repeats=repeats, **options)
        warnings = [warning for result in done.results for warning in result.warnings]
        assert (
            bool([one for one in warnings if f"answered by another model, {served}" in one])
            is is_other
        )
    (screen,) = first_screens(Study.of(tmp_path / "out"))
    said = "Check single: reply by another model in 2 of 2 judgements."
    assert (said in screen.warnings) is is_other
    with closing(sqlite3.connect(tmp_path / "out" / "journal.sqlite")) as database:
        replies = [
            json.loads(reply) for (reply,) in database.execute("SELECT reply FROM jurygraph_calls")
        ]
    assert [reply["system_fingerprint"] for reply in replies] == ["fp_1", "fp_1"]
    assert [reply.get("served") for reply in replies] == [served if is_other else None] * 2


# The usage of a request: read once, never an exception, never negative

ODD = ["many", "", 12.5, 1e30, -5, 0, None, True, [7], {"n": 7}, float("inf"), float("nan")]


def usage(text: str = "Score: 4", label: str = OPENAI, **said: Any) -> Usage:
    message = AIMessage(text)
    counts: Any = {"total_tokens": 0, **said}
    # As some clients do: without the checks of the class.
    message.usage_metadata = counts
    return read_response([message], label, 0.0).usage


@pytest.mark.parametrize("count", ODD, ids=str)
def test_an_odd_count_makes_the_cost_unknown(count: Any) -> None:
    for found in (
        usage(input_tokens=count, output_tokens=20),
        usage(input_tokens=100, output_tokens=count),
    ):
        assert found.cost_usd is None
        assert min(found.input_tokens, found.output_tokens) >= 0
    assert usage(input_tokens=count, output_tokens=20, label="offline").cost_usd == 0


def test_unknown_tokens_are_called_so_and_sums_of_them_the_least(
    provider: Provider, tmp_path: Path
) -> None:
    rows = [{"id": name, "source": "Noon.", "candidate": f"{name}."} for name in ("a", "b")]
    data = write_lines(tmp_path / "mine.jsonl", rows)

    def answer(request: Request) -> Text:
        told = Taken(100, output=20) if "b." in request.user else Taken(0, output=0)
        return Text(fields={"reasoning": "Fine.", "score": 4}, usage=told)

    provider.play(by=answer)
    options: dict[str, Any] = {
        "models": {"*": OPENAI},
        "aspects": ["fluency"],
        "out": tmp_path / "out",
    }
    first, second = evaluate("single", data, **options).results
    assert (first.uncounted, second.uncounted, first.transcript[0].get("uncounted")) == (1, 0, 1)
    commands = (["show", str(tmp_path / "out"), "a"], ["report", str(tmp_path / "out"), "--all"])
    told = "".join(
        CliRunner().invoke(app, command, catch_exceptions=False).output for command in commands
    )
    assert "1 call, unknown tokens, cost unknown" in told
    assert "token counts are lower bounds" in " ".join(told.split())
    assert total_usage(ProgressCounters(usage=first)).startswith(
        "total usage: 1 calls, unknown tokens"
    )
    assert "at least 120 tokens" in total_usage(ProgressCounters(usage=first + second))


@pytest.mark.parametrize("cached", [-5, 1e30, "many", 101])
def test_an_odd_count_of_cached_tokens_makes_the_cost_unknown(cached: Any) -> None:
    counted = usage(input_tokens=100, output_tokens=20, input_token_details={"cache_read": cached})
    assert (counted.cost_usd, counted.cached_input_tokens, counted.input_tokens) == (None, 0, 100)


def test_whole_numbers_in_other_clothes_are_counts_and_an_empty_reply_may_have_taken_none() -> None:
    counted = usage(
        input_tokens="100", output_tokens=20.0, input_token_details={"flex_cache_read": 40}
    )
    assert (counted.input_tokens, counted.output_tokens, counted.cached_input_tokens) == (
        100,
        20,
        40,
    )
    assert counted.cost_usd == pytest.approx((60 * 0.15 + 40 * 0.075 + 20 * 0.6) / 1e6)
    assert usage("", input_tokens=100, output_tokens=0).cost_usd == pytest.approx(15e-6)


IN_THE_LIST = {
    "google_genai": "google", "mistralai": "mistral", "xai": "x-ai", "azure_openai": "azure",
    "bedrock_converse": "aws", "amazon_bedrock": "aws",
}  # fmt: skip
"""From a provider's name to the one that the price list has for it, where that is another one."""

LABELS = [
    *(f"openai:{name}" for name in ("gpt-4o-mini", "gpt-4o", "gpt-4", "gpt-3.5-turbo", "o1-mini")),
    "google_genai:gemini-2.0-flash", "google_genai:gemini-2.5-pro", "anthropic:claude-haiku-4-5",
    "mistralai:mistral-small-latest", "mistral:mistral-small-latest", "groq:llama-3.3-70b-versatile",
    "deepseek:deepseek-chat", "xai:grok-4", "azure_openai:gpt-4o-mini", "azure:gpt-4o-mini",
    "bedrock_converse:anthropic.claude-3-5-sonnet-20241022-v2:0",
    "amazon_bedrock:us.anthropic.claude-3-5-sonnet-20241022-v2:0", "openrouter:anthropic/claude-3.5-sonnet",
]  # fmt: skip


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize(
    "tokens", [(1000, 0, 100, 0), (1000, 200, 100, 500), (300_000, 1000, 10, 0), (0, 0, 0, 0)]
)
def test_against_the_list(label: str, tokens: tuple[int, int, int, int]) -> None:
    provider, _, name = label.partition(":")
    sent, cached, written, kept = tokens
    usage = Counts(
        input_tokens=sent, cache_read_tokens=cached, cache_write_tokens=kept, output_tokens=written
    )
    listed = calc_price(usage, model_ref=name, provider_id=IN_THE_LIST.get(provider, provider))
    assert prices.cost_usd(label, *tokens) == pytest.approx(float(listed.total_price), rel=1e-12)


@pytest.mark.parametrize(
    "label",
    [
        "openai:my-own",
        "anthropic:nobody",
        "somebody",
        "gpt-4o",
        "google_genai:nothing",
        "ollama:llama3.2",
    ],
)
def test_an_unknown_price_is_unknown(label: str) -> None:
    assert prices.cost_usd(label, 1000, 0, 100) is None
    assert not prices.is_priced(label)


@pytest.fixture(autouse=True)
def _none_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices, "_GIVEN", {})


def test_a_price_that_is_given_counts() -> None:
    assert not prices.is_priced("ollama:my-own")
    resolver.check(ModelSpec.parse("ollama:my-own?price_in=0.5&price_out=2"))
    assert prices.is_priced("ollama:my-own")
    assert prices.cost_usd("ollama:my-own", 1_000_000, 400_000, 100_000) == pytest.approx(0.5 + 0.2)
    # Zero is given on purpose only.
    assert prices.cost_usd("ollama:local", 1000, 0, 100) is None
    resolver.check(ModelSpec.parse("ollama:local?price_in=0&price_out=0"))
    assert prices.cost_usd("ollama:local", 1000, 0, 100) == 0
