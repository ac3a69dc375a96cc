"""Test default reply limits, and requests whose reply never came."""

from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import Evaluation, evaluate
from jurygraph.eval.cli.app import app
from jurygraph.eval.cli.progress import total_usage
from jurygraph.eval.results.config import RunConfig
from jurygraph.eval.run.calls.call_pipeline import RunContext
from jurygraph.eval.run.calls.progress_counters import ProgressCounters
from jurygraph.eval.run.plan.estimator import estimate, estimate_table
from jurygraph.eval.run.plan.plan import plan
from jurygraph.eval.run.runner import execute
from jurygraph.graphs.engine.registry import find_protocol
from jurygraph.nodes.common.sync_bridge import run_blocking
from jurygraph.nodes.models.capabilities import is_limited_by_default
from jurygraph.nodes.models.provider_errors import ProviderFault, ResponseError
from jurygraph.nodes.models.resolver import wrap
from jurygraph.state.errors import ContextOverflowError
from jurygraph.state.verdict_warnings import OVERFLOW, kind_of
from langchain_core.language_models.fake_chat_models import ParrotFakeChatModel
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from typer.testing import CliRunner

from .loopback import Answer, Broken, Failure, Hang, Provider, Request, Text, Usage
from .loopback_debate import COMPARE_TASK, OPENAI, SCORE_TASK, Debaters, run
from .sample_data import numbered, read_lines, write_lines

MODEL = {"*": OPENAI}
PLAIN: Any = {"structured": "off"}
LIMIT = "max_completion_tokens"


def single(folder: Path, *, count: int = 3, **options: Any) -> Evaluation:
    options = {
        "models": MODEL,
        "settings": PLAIN,
        "aspects": ["fluency"],
        "out": folder / "out",
        **options,
    }
    return evaluate("single", numbered(folder, count), **options)


def limits(provider: Provider) -> list[int | None]:
    return [request.parameters.get(LIMIT) for request in provider.requests]


def scorer(request: Request) -> Answer:
    return "Fine.\nScore: 4"


# Models with the default limit

FIELDS = {"score": 4, "winner": "1", "no_issue": True, "reasoning": "Fine.", "feedback": "Fine."}


def filled(request: Request) -> Answer:
    """Fill in the requested form; speeches, steps and G-Eval's numbers are in words."""
    properties = {} if request.schema is None else request.schema["properties"]
    return {name: FIELDS.get(name, 10) for name in properties} or "1. Read.\n2. Score it.\n\n4"


@pytest.mark.parametrize(
    ("protocol", "task", "settings", "expected"),
    [
        ("debate", SCORE_TASK, {}, {("score_reply", 2048), ("critique_reply", 2048)}),
        ("more", COMPARE_TASK, {}, {("text", 2048), ("judgement_reply", 2048)}),
        (
            "samre",
            COMPARE_TASK,
            {},
            {("text", 2048), ("judgement_reply", 2048), ("vote_reply", 1024)},
        ),
        (
            "geval",
            SCORE_TASK,
            {"weighting": "sampling", "samples": 1},
            {("text", 1024), ("text", 2048)},
        ),
    ],
)
def test_replies_have_a_limit_by_their_form(
    provider: Provider, protocol: str, task: Any, settings: Any, expected: set[tuple[str, int]]
) -> None:
    provider.play(by=filled)
    find_protocol(protocol).build(models=MODEL, **settings).compile().invoke({"task": task})
    forms = [request.form or "text" for request in provider.requests]
    assert set(zip(forms, limits(provider), strict=True)) == expected


REASONING = (
    *("openai:o3-mini", "openai:gpt-5", "azure_openai:o4-mini", "groq:openai/gpt-oss-20b"),
    *("google_genai:gemini-2.5-pro", "deepseek:deepseek-reasoner", "ollama:deepseek-r1:7b"),
    *("openrouter:moonshotai/kimi-k2-thinking", "mistralai:magistral-small"),
)
LIMITED = (
    *("openai:gpt-4.1-mini", "groq:llama-3.3-70b-versatile", "anthropic:claude-sonnet-4-5"),
    *("google_genai:gemini-2.0-flash", "deepseek:deepseek-chat", "ollama:llama3.2"),
    "mistralai:mistral-small-latest",
)


CLAUDE = "anthropic:claude-sonnet-4-5"


@pytest.mark.parametrize(("model", "is_limited"), [
    *(({"name": name}, False) for name in (*REASONING, "offline")),
    *(({"name": name}, True) for name in LIMITED),
    ({"name": CLAUDE, "thinking": {"type": "enabled", "budget_tokens": 2000}}, False),
    ({"name": CLAUDE, "thinking": {"type": "disabled"}}, True),
    ({"name": CLAUDE, "reasoning_effort": "low"}, False),
    ({"name": CLAUDE, "extra_body": {"chat_template_kwargs": {"enable_thinking": True}}}, False),
    ({"name": CLAUDE, "extra_body": {"max_tokens": 90}}, False),
    ({"name": CLAUDE, "num_predict": 90}, False), ({"name": CLAUDE, "bound": {"max_tokens": 90}}, False),
    ({"name": CLAUDE, "max_tokens": 0}, False), ({"name": CLAUDE, "temperature": 0.3, "seed": 1}, True),
], ids=str)  # fmt: skip
def test_models_that_reason_or_have_a_limit_get_no_default(
    model: dict[str, Any], is_limited: bool
) -> None:
    assert is_limited_by_default(model) is is_limited


@pytest.mark.parametrize(("name", "settings", "expected"), [
    (OPENAI, {}, [2048, 2048]), (OPENAI, {"max_tokens": 300}, [300, 300]),
    (OPENAI, {"max_tokens": 0}, [None, None]), (f"{OPENAI}?max_tokens=50", {"max_tokens": 300}, [50, 50]),
    (f"{OPENAI}?max_tokens=0", {}, [None, None]),
    (f"{OPENAI}?max_tokens=0", {"max_tokens": 300}, [None, None]), ("openai:o3-mini", {}, [None, None]),
])  # fmt: skip
def test_who_says_how_long(
    provider: Provider, name: str, settings: dict[str, Any], expected: list[int | None]
) -> None:
    provider.play(by=Debaters((4,)))
    run("async", models={"*": name}, **settings)
    assert limits(provider) == expected


def test_a_model_object_keeps_its_own_limit(provider: Provider) -> None:
    key = SecretStr("test-key")
    own = ChatOpenAI(model="gpt-4o-mini", base_url=provider.openai_url, api_key=key, max_tokens=77)
    provider.play(by=Debaters((4, 4), satisfied_in=None))
    run("sync", models={"*": own}, n=1)
    provider.play(by=Debaters((4,)))
    run("sync", models={"*": own}, max_tokens=0)
    assert limits(provider) == [77] * 5
    parrot = wrap(ParrotFakeChatModel())
    assert (parrot.reply_limit("text"), parrot.warnings) == ({}, {})


# Providers and models that do not support the limit


@pytest.mark.parametrize("thought", ["<think>Let me see, the text is", ""])
def test_a_reply_cut_off_in_thought_gets_more_room(
    provider: Provider, tmp_path: Path, thought: str
) -> None:
    def by(request: Request) -> Answer:
        if request.parameters[LIMIT] < 4000:
            return Text(thought, finish="length", usage=Usage(output=2048))
        return Text("<think>It is fine.</think>Fine.\nScore: 4", usage=Usage(output=4000))

    provider.play(by=by)
    first = single(tmp_path, concurrency=1, limit=2)
    assert [line.score for line in first.results] == [4.0, 4.0]
    assert limits(provider) == [2048, 4096, 4096]
    assert [(line.calls, line.output_tokens) for line in first.results] == [(2, 6048), (1, 4000)]
    assert "reasons before it answers: its replies had 2 times" in first.results[0].warnings[0]
    second = single(tmp_path, concurrency=1)
    assert limits(provider) == [2048, 4096, 4096, 4096], (
        "a resumed run has learned it from the journal"
    )
    assert second.results[2].warnings == first.results[1].warnings


def test_it_is_never_asked_for_without_a_bound(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=lambda request: Text("<think>Let me see", finish="length"))
    done = single(tmp_path, limit=2, concurrency=1)
    # Three requests, and three for the value alone; an unsuccessful attempt teaches nothing.
    assert limits(provider) == [2048, 4096, 8192, 2048, 4096, 8192] * 2
    told = str(done.failed[0].error)
    assert "spent all its tokens on reasoning" in told
    assert "8,192 tokens, the most that are tried" in told


@pytest.mark.parametrize(
    "message",
    [
        "`max_tokens` must be less than or equal to `1024`, the maximum for this model",
        "This model's maximum context length is 2500 tokens. However, you requested 2700 tokens (652 in the "
        "messages, 2048 in the completion). Please reduce the length of the messages or completion.",
    ],
)
def test_a_default_too_much_is_sent_only_once(
    provider: Provider, tmp_path: Path, message: str
) -> None:
    def by(request: Request) -> Answer:
        return Failure(400, message) if request.parameters.get(LIMIT) else scorer(request)

    provider.play(by=by)
    done = single(tmp_path, concurrency=1, limit=2)
    assert [line.score for line in done.results] == [4.0, 4.0]
    assert limits(provider) == [2048, None, None]
    assert any("default limit" in told for told in done.results[0].warnings)
    # A limit that the caller set is the caller's to correct.
    own = single(tmp_path, out=None, settings={**PLAIN, "max_tokens": 9000}, limit=1)
    assert message in str(own.failed[0].error)
    assert limits(provider)[3:] == [9000]


TOO_LONG = [
    (
        400,
        "This model's maximum context length is 8192 tokens, but your messages resulted in 9001 tokens.",
    ),
    (400, "prompt is too long: 214000 tokens > 200000 maximum"),
    (400, "the request exceeds the available context size. try increasing the context size"),
    (
        400,
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    (413, "Please reduce the length of the messages or completion."),
    (500, "Input is too long for requested model: the context window is exceeded"),
]


@pytest.mark.parametrize(("status", "message"), TOO_LONG)
def test_a_small_context_is_told(
    provider: Provider, tmp_path: Path, status: int, message: str
) -> None:
    provider.play(by=lambda request: Failure(status, message))
    done = single(tmp_path, limit=1)
    told = str(done.failed[0].error)
    assert "do not fit into the model's context" in told
    assert "\n" not in told
    assert len(provider.requests) <= 2
    assert not done.given_up


@pytest.mark.parametrize(("overflow", "at"), [("last", 4), ("error", 4), ("last", 1)])
def test_a_debate_beyond_the_context_may_keep_its_score(
    provider: Provider, overflow: str, at: int
) -> None:
    debaters = Debaters((2, 3, 4), satisfied_in=None)
    full = Failure(*TOO_LONG[0])
    provider.play(by=lambda request: full if len(provider.requests) >= at else debaters(request))
    if overflow == "error" or at == 1:
        with pytest.raises(ContextOverflowError, match="do not fit into the model's context"):
            run("async", models=MODEL, on_overflow=overflow)
        return
    verdict, transcript = run("async", models=MODEL, on_overflow=overflow)
    assert (verdict.score, verdict.score_by_round, verdict.stop_reason) == (
        3.0,
        (2.0, 3.0),
        "max_rounds",
    )
    assert [kind_of(told) for told in verdict.warnings] == [OVERFLOW]
    assert "9001 tokens" in verdict.details["context_full"]
    assert [turn["role"] for turn in transcript if turn["calls"]] == ["scorer", "critic", "scorer"]


@pytest.mark.parametrize(("given", "path", "told", "window"), [
    ("&context_window=900", "", {}, 900),
    ("", "/v1/models", {"data": [{"id": "other"}, {"id": "qwen", "max_model_len": 800}]}, 800),
    ("", "/v1/models", {"data": [{"id": "qwen.gguf", "meta": {"n_ctx": 700}}]}, 700),
    ("", "/props", {"default_generation_settings": {"n_ctx": 600}}, 600),
    ("&context_window=50000", "/props", {"default_generation_settings": {"n_ctx": 600}}, None),
    ("", "", {}, None),
])  # fmt: skip
def test_the_longest_prompt_is_held_against_the_context_before_the_run(
    provider: Provider,
    tmp_path: Path,
    given: str,
    path: str,
    told: dict[str, Any],
    window: int | None,
) -> None:
    provider.told = {path: told}
    # The long item is the last, and of a few items that are sampled none.
    rows = [
        *(
            {**row, "human": {"fluency": n % 5 + 1}}
            for n, row in enumerate(read_lines(numbered(tmp_path, 40)))
        ),
        {"id": "long", "source": "Noon. " * 4000, "candidate": "Noon."},
    ]
    data = write_lines(tmp_path / "mine.jsonl", rows)
    model = f"openai:qwen?base_url={provider.openai_url}{given}"
    rest = ["debate", "--data", str(data), "--model", model, "--aspect", "fluency", "--dry-run"]
    for command in ("run", "versus") if window == 900 else ("run",):
        said = " ".join(
            CliRunner().invoke(app, [command, *rest], catch_exceptions=False).output.split()
        )
        assert ("Warning: debate: the longest prompt of" in said) is (window is not None)
        assert window is None or f"the context of openai:qwen has {window:,}" in said
    assert not provider.requests


def test_tokens_per_minute_are_no_context() -> None:
    fault = ProviderFault(ResponseError("Request too large: reduce the length or wait", 429))
    assert (fault.is_too_long, fault.retryable) == (False, True)


# Requests without a reply


@pytest.mark.slow
def test_endless_replies_are_given_up_and_counted(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=lambda request: Hang(3600) if "Number 1." in request.user else scorer(request))
    # Long enough for a reply of a busy machine.
    done = single(tmp_path, timeout=2.0)
    assert len(provider.requests) == 5, (
        "two replies, and three attempts at what does not come to an end"
    )
    told = str(done.failed[0].error)
    assert all(word in told for word in ("--timeout", "max_tokens", "may bill", "after 3 attempts"))
    assert (done.given_up, [line.item for line in done.failed]) == (3, ["i1"])
    again = single(tmp_path, timeout=2.0, max_calls=6)
    assert again.stopped == "budget", "what was given up in an earlier start counts as well"
    assert len(provider.requests) == 6


@pytest.mark.parametrize(
    "limit", [{"max_calls": 4}, {"max_tokens": 1500}, {"max_cost": 0.0005}], ids=str
)
def test_given_up_requests_count_as_spent(
    provider: Provider, tmp_path: Path, limit: dict[str, Any]
) -> None:
    provider.play(by=lambda request: Broken())
    done = single(tmp_path, count=20, concurrency=1, **limit)
    assert done.stopped == "budget"
    assert done.given_up == len(provider.requests) < 12


@pytest.mark.usefixtures("fast_retries")
def test_requests_that_are_answered_with_an_error_count_as_well(
    provider: Provider, tmp_path: Path
) -> None:
    no = Failure(500, "No.")
    provider.play(by=lambda request: no if len(provider.requests) % 3 else scorer(request))
    counts = ProgressCounters()
    planned = plan(
        "single", numbered(tmp_path, 20), models=MODEL, settings=PLAIN, aspects=["fluency"]
    )
    done = run_blocking(
        execute(planned, RunContext(RunConfig(max_calls=10, concurrency=1), counts))
    )
    assert (done.stopped, len(done.results), len(provider.requests)) == ("budget", 3, 10)
    assert "3 calls (10 requests, incl. refused ones), " in total_usage(counts)


def test_what_is_unsent_is_free(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert single(tmp_path, limit=1, attempts=2).given_up == 0
    assert not provider.requests
    told = "2 requests were given up after being sent: the provider may bill for that"
    assert told in total_usage(ProgressCounters(given_up=2))
    assert "given up" not in total_usage(ProgressCounters())


# Documentation of the limit


def test_manifest_signature_and_estimate_tell_the_limits(
    provider: Provider, tmp_path: Path
) -> None:
    row = {"id": "q", "question": "Why?", "answer_1": "Yeast.", "answer_2": "Heat."}
    pairs = write_lines(tmp_path / "pairs.jsonl", [row])
    default = plan("samre", pairs, models=MODEL)
    assert default.manifest["reply_limits"]["samre"]["*"] == {
        "*": 2048,
        "vote": 1024,
        "steps": 1024,
    }
    assert "|max_tokens:*=2048,vote=1024,steps=1024|" in default.manifest["signatures"]["samre"]
    notes = estimate_table(estimate(default)).notes
    assert any("2,048 tokens (steps, vote: 1,024)" in note for note in notes)
    own = plan("samre", pairs, models=MODEL, settings={"max_tokens": 90})
    assert own.manifest["reply_limits"]["samre"]["*"] == 90
    assert "|max_tokens:90|" in own.manifest["signatures"]["samre"]
    assert "2,048" not in "".join(estimate_table(estimate(own)).notes)
    offline = plan("samre", pairs)
    assert "max_tokens" not in offline.manifest["signatures"]["samre"]
    assert offline.manifest["reply_limits"]["samre"] == {"*": None}
