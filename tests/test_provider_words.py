"""Test providers' records and message patterns: an example needs each alternative."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from jurygraph.nodes.models import capabilities, model_chains, provider_errors, providers
from jurygraph.nodes.models.provider_errors import _snake
from jurygraph.nodes.models.providers import PROVIDERS, Refusal
from jurygraph.state import redaction
from jurygraph.state.redaction import redact

from .alternatives import alternatives, unneeded_among
from .source_tree import ROOT

REFUSALS: dict[Refusal, list[str]] = {
    "unsupported": [
        "Unsupported value: 'temperature'.",
        "logprobs are not currently supported with this model",
        "This model does not support seed.",
        "Unknown parameter: 'seed'.",
        "Unrecognized request argument supplied: seed",
        "create() got an unexpected keyword argument 'seed'",
        "Invalid JSON payload: Cannot find field: response_schema",
        "Only the default (1) value can be used.",
        "'minimum' is not permitted.",
        "`temperature` is deprecated for this model.",
        "response_format.type is unavailable now",
        "`temperature` may only be set to 1 when thinking is on.",
        "`top_p` must be greater than 0.95 or unset.",
        "`temperature` and `top_p` cannot both be specified.",
        "seed: Extra inputs were given",
        "gpt-x does not accept temperature",
        "invalid temperature: only 1 is allowed",
        "seed must not be set",
        "Remove toolConfig.toolChoice.any and try again.",
    ],
    "limit": [
        "`max_tokens` must be less than 1024",
        "2048 in the completion",
        "Please reduce the length of the messages or completion.",
    ],
    "not_built": [
        "tools param requires --jinja flag",
        "Failed to initialize samplers: failed to parse grammar",
        "JSON schema conversion failed",
        "response_format is not implemented",
        "Invalid schema for response_format 'vote'",
        "No endpoints found that support tool use.",
    ],
    "unexplained": ["Request contains an invalid argument.", "Provider returned error"],
    "form_parameter": [
        "'response_format' of type 'x'",
        "json_schema",
        "type 'json_object'",
        "tool_choice: expected one of",
        "the toolConfig.any field",
        "does not support output format",
        "textFormat",
        "responseSchema",
        "guided_regex",
    ],
    "form": [
        "JSON mode is off.",
        "Structured outputs are off.",
        "Model without formatted output.",
        "no tools",
        "function calling",
        "tool_use",
        "guided decoding",
        "grammar",
        "constrained decoding",
        "the schema is odd",
        "that can handle the requested parameters",
    ],
    "no_form": [
        "the context window is full",
        "prompt is too long",
        "maximum number of tools",
        "quota",
        "No credit left.",
        "billing",
        "moderation",
        "content management policy",
        "Invalid API key",
    ],
    "bound": [
        "'minimum' is not permitted",
        "maxLength",
        "multipleOf",
        "keyword 'pattern'",
        "enum[0]",
        "contains features not supported by xgrammar",
        "failed to parse grammar",
    ],
    "too_much": [
        "a constraint that has too many states for serving",
        "parameters.enum[0]",
        "Schema is too complex for compilation",
        "The compiled grammar is too large",
    ],
    "no_system": [
        "System role not supported",
        "This model doesn't support system messages",
        "Conversation roles must alternate user/assistant/...",
        'role only allows "user"',
        "Unexpected role 'system' after role 'user'",
        "role of a message not supported: 'system'",
        "Only user and assistant roles are supported!",
    ],
    "cache": ["cache_control", "cachePoint", "You do not have access to prompt caching"],
}


def test_every_refusal_that_is_known_is_searched_for() -> None:
    assert provider_errors._FINDS.keys() == REFUSALS.keys() == set(get_args(Refusal))


@pytest.mark.parametrize("about", REFUSALS)
def test_every_pattern_of_a_refusal_is_needed(about: Refusal) -> None:
    common = re.match(
        r"\(\?x:(.*?\n\s*)\)(?=\||$)", provider_errors._FINDS[about].pattern, re.DOTALL
    )
    parts = [f"(?x:{part}\n)" for part in alternatives(common[1])] if common else []
    parts += [pattern for provider in PROVIDERS for pattern in provider.refusals.get(about, ())]
    assert unneeded_among(parts, 0, [_snake(words) for words in REFUSALS[about]]) == []
    found = provider_errors._FINDS[about]
    assert [words for words in REFUSALS[about] if not found.search(_snake(words))] == []
    assert not found.search("the model is overloaded")


EXAMPLES: dict[str, tuple[re.Pattern[str], list[str]]] = {
    "a prompt that is too long": (
        provider_errors._TOO_LONG,
        [
            "context_length_exceeded",
            "larger than the maximum context",
            "max_model_len (4096)",
            "the maximum number of tokens allowed (1048576)",
            "input tokens exceed the configured limit",
            "prompt is too long: 210000 tokens",
            "too many input tokens",
            "Please reduce the length of the messages.",
            "`max_new_tokens` must be <= 512",
            "the request exceeds the available context",
        ],
    ),
    "together with the reply": (
        provider_errors._WITH_REPLY,
        ["max_tokens", "652 in the messages, 2048 in the completion", "2048 output tokens"],
    ),
    "nothing was sent": (
        provider_errors._NO_CONNECTION,
        [
            "ConnectionRefusedError",
            "gaierror",
            "ConnectError",
            "ConnectTimeout",
            "ClientConnectorError",
            "PoolTimeout",
            "ClientSSLError",
            "ClientCertificateError",
        ],
    ),
    "the connection": (
        provider_errors._CONNECTION,
        [
            "EOFError",
            "gaierror",
            "SSLError",
            "HTTPException",
            "JSONDecodeError",
            "TimeoutError",
            "ConnectionResetError",
            "ClientConnectorError",
            "ConnectError",
            "ServerDisconnectedError",
            "NetworkError",
            "ReadError",
            "WriteError",
            "RemoteProtocolError",
            "ClientOSError",
            "ClientPayloadError",
            "IncompleteRead",
            "ChunkedEncodingError",
            "DecodingError",
            "ContentTypeError",
            "APIResponseValidationError",
            "RateLimitError",
            "OverloadedError",
            "InternalServerError",
            "ServiceUnavailable",
            "DeadlineExceeded",
        ],
    ),
    "models that reason": (
        capabilities._REASONS,
        [
            "openai:o3-mini",
            "deepseek-r2",
            "ollama:qwen3:8b",
            "mistralai:magistral-small",
            "google_genai:gemini-2.5-pro",
            "xai:grok-4",
            "glm-4.6",
            "minimax-m2",
            "kimi-k2",
            "claude-thinking",
            "phi-4-reasoning",
        ],
    ),
    "parameters without an influence": (
        model_chains._LEFT_OUT,
        [
            "openai_key",
            "secret",
            "password",
            "credentials",
            "auth",
            "token",
            "access_token_x",
            "base_url",
            "base_uri",
            "endpoint",
            "openai_api_base",
            "host",
            "proxy",
            "default_headers",
            "default_query",
            "project",
            "location",
            "organization",
            "client",
            "http_options",
            "socket_options",
            "timeout",
            "max_retries",
            "rate_limiter",
            "streaming",
            "verbose",
            "custom_get_token_ids",
            "default_metadata",
            "tiktoken_model_name",
            "lc_attributes",
        ],
    ),
    "keys by their form": (
        redaction._OTHER_KEYS,
        [
            "AIzaSyAbcdefghijk",
            "hf_abcdefghijklmnopqrst",
            "r8_abcdefghijklmnopqrst",
            "ghp_abcdefghijklmnopqrst",
            "github_pat_abcdefghijklmnopqrst",
            "glpat-abcdefghijklmnopqrst",
            "AKIAABCDEFGHIJKL",
            "eyJhbGciOiJI.eyJzdWIiOiIx",
        ],
    ),
}


@pytest.mark.parametrize("case", EXAMPLES)
def test_every_alternative_is_needed(case: str) -> None:
    pattern, examples = EXAMPLES[case]
    assert unneeded_among(alternatives(pattern.pattern), pattern.flags, examples) == []
    assert [text for text in examples if not pattern.search(text)] == []
    assert not pattern.search("temperature of 0.5")


OBSTACLES = {
    "certificate": [
        "CERTIFICATE_VERIFY_FAILED",
        "SSLCertVerificationError",
        "ClientConnectorCertificateError",
    ],
    "no such host": [
        "gaierror",
        "ClientConnectorDNSError",
        "Name or service not known",
        "nodename nor servname provided",
        "Temporary failure in name resolution",
        "getaddrinfo failed",
    ],
    "connection refused": [
        "ConnectionRefusedError",
        "Connection refused",
        "Connect call failed",
        "All connection attempts failed",
    ],
}


@pytest.mark.parametrize("words", OBSTACLES)
def test_every_sign_of_an_obstacle_is_needed(words: str) -> None:
    [pattern] = [sign for sign, advice in provider_errors._OBSTACLES.items() if words in advice]
    assert unneeded_among(alternatives(pattern.pattern), pattern.flags, OBSTACLES[words]) == []
    for text in OBSTACLES[words]:
        assert next(sign for sign in provider_errors._OBSTACLES if sign.search(text)) is pattern


# Keys


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:zwiebel@host",
        "https://zwiebel@host",
        "Cookie: session=zwiebel; other=zwiebel",
        '{"Authorization": "Bearer zwiebel"}',
        '{\\"x-api-key\\": \\"zwiebel\\"}',
        "Authorization: Strange zwiebel",
        "x-api-key: zwiebel",
        "(b'x-goog-api-key', b'zwiebel')",
        "https://host/v1?key=zwiebel",
        "https://host/v1?a=1&sig=zwiebel",
        "sent bearer zwiebel",
        *(
            f"{name}: zwiebel"
            for name in ("api_key", "access-key", "secretkey", "private_key", "subscription-key")
        ),
        *(
            f"{name}=zwiebel"
            for name in ("access_token", "auth-token", "refreshtoken", "security_token")
        ),
        *(
            f"{name}=zwiebel"
            for name in ("session_token", "id_token", "secret", "passwd", "password")
        ),
        *(f"{name} => zwiebel" for name in ("credential", "credentials", "cookie")),
        *(
            f"x-api-key: {scheme} zwiebel"
            for scheme in (
                "bearer",
                "basic",
                "digest",
                "token",
                "apikey",
                "negotiate",
                "aws4-hmac-sha256",
            )
        ),
    ],
)
def test_every_shape_of_a_key_is_hidden(text: str) -> None:
    assert "zwiebel" not in redact(text)
    assert redact("the zwiebel of https://host/zwiebel") == "the zwiebel of https://host/zwiebel"


@pytest.mark.parametrize("prefix", sorted(redaction._PREFIXES))
def test_keys_are_hidden_by_their_prefix(prefix: str) -> None:
    for sign in "-_":
        assert redact(f"key {prefix}{sign}abcdefgh1") == "key ***"
        assert redact(f"runs/{prefix}{sign}evaluation") == f"runs/{prefix}{sign}evaluation"


def test_keys_of_all_providers_are_hidden_before_any_provider_is_imported() -> None:
    code = "import sys; from jurygraph.state.redaction import redact; print(redact(sys.argv[1]))"
    keys = " ".join(
        f"{name}-abcdefgh1" for name in ["gsk", "xai", "nvapi", "pplx", "fw", "tgp", "csk"]
    )
    done = subprocess.run(
        [sys.executable, "-c", code, keys], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == " ".join(["***"] * 7)


# Records


def test_no_two_providers_contradict_each_other() -> None:
    meanings: dict[str, set[str]] = {}
    for provider in PROVIDERS:
        for ending, words in provider.finish_reasons.items():
            for word in words:
                meanings.setdefault(word, set()).add(ending)
    assert {word: found for word, found in meanings.items() if len(found) > 1} == {}
    names = [name for provider in PROVIDERS for name in provider.names]
    classes = [client.class_name for provider in PROVIDERS for client in provider.clients]
    assert len(names) == len(set(names))
    assert len(classes) == len(set(classes))


def test_every_file_of_a_provider_is_listed() -> None:
    folder = Path(providers.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "provider"}
    written = (folder / "__init__.py").read_text("utf-8")
    assert {name for name in files if f"from .{name} import" not in written} == set()
    assert len(PROVIDERS) == len(files)


# The names of providers

NAMED = re.compile(
    r"openai|anthropic|claude|google|gemini|vertex|azure|bedrock|cerebras|cohere(?!n)|deepseek|fireworks"
    r"|groq|minimax|mistral|moonshot|nvidia|ollama|openrouter|perplexity|watsonx|(?<![a-z])xai|zhipu",
    re.IGNORECASE,
)
EXCEPTIONS = {
    "state/redaction.py": "a prefix of keys is a name, and errors are redacted before records exist",
    "nodes/models/families.py": "makers of models, who wrote texts; not services that are called",
    "nodes/models/resolver.py": "OpenAI's protocol, which many servers speak, is named in a message",
    "eval/run/batch_api/anthropic_batches.py": "batches of Anthropic",
    "eval/run/batch_api/gemini_batches.py": "batches of Gemini",
    "eval/run/plan/signatures.py": "the packages that this one requires, with their versions",
}
"""Files outside the records that name a provider, with the reason."""


def named_providers(path: Path) -> list[str]:
    """Return texts in a file that name a provider, except docstrings, comments and examples."""
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and id(node) not in docstrings
    ]
    found = []
    for text in texts:
        if isinstance(text.value, str):
            words = re.sub(r"openai:[\w.<>-]+", "", text.value)
            words = re.sub(r"#.*$", "", words, flags=re.MULTILINE) if "\n" in words else words
            if NAMED.search(words):
                found.append(f"{path.name}:{text.lineno}: {text.value[:60]}")
    return found


@pytest.mark.slow
def test_only_records_name_a_provider() -> None:
    named = {}
    for folder in ("state", "nodes", "graphs", "eval", "testing"):
        for path in (ROOT / folder).rglob("*.py"):
            place = path.relative_to(ROOT).as_posix()
            if "nodes/models/providers/" not in place and (found := named_providers(path)):
                named[place] = found
    assert {place: found for place, found in named.items() if place not in EXCEPTIONS} == {}
    assert EXCEPTIONS.keys() == named.keys()


def test_a_text_that_names_a_provider_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text(
        '"""Ask OpenAI."""\nNAME = "ChatAnthropic"\nSAY = "such as openai:gpt-4o-mini"\n'
    )
    assert named_providers(path) == ["file.py:2: ChatAnthropic"]
