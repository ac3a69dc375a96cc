"""Test that echoed keys and control characters reach no file, screen or exception."""

import base64
import gzip
import json
import pickle
import re
import sqlite3
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import aevaluate
from jurygraph.eval.journal.records import JournalError
from jurygraph.eval.results.results import Result
from jurygraph.eval.results.run_log import logging_to
from jurygraph.graphs import single
from jurygraph.nodes.models.provider_errors import ResponseError
from jurygraph.state import (
    DataError,
    InputError,
    JurygraphError,
    ModelCallError,
    ReplyError,
    StoppedError,
    UsageError,
)
from jurygraph.state.errors import Fault, TransientCallError
from jurygraph.state.redaction import redact, redact_all, remember_secrets
from langchain_core.language_models import BaseChatModel

from .loopback import Answer, Failure, Provider, Raw, Request
from .loopback_debate import chat_of
from .processes import command_line, in_this_process

# Unlike any provider's keys: only its source reveals that it is one.
KEY = "Zwiebel+kuchen/17"
STEERING = "\x1b[31mred\x1b]0;title\x07\x9b31m\u202eback\u2066"
TASK = {"kind": "score", "source": "It rained.", "candidate": "Rain.", "aspect": "consistency"}


def echo(request: Request) -> Failure:
    """An error that quotes all headers of the request, as some gateways send it."""
    return Failure(401, f"no access: {json.dumps(dict(request.headers))} {STEERING}")


def echo_as_page(request: Request) -> Raw:
    """The page of a proxy, with the raw headers, and the key where 200 characters end."""
    lines = "\r\n".join(f"{name}: {value}" for name, value in request.headers.items())
    return Raw(f"<pre>{'x' * 90}{lines}{STEERING}</pre>", "text/html", 403)


def echo_inside_a_reply(request: Request) -> Raw:
    return Raw(
        json.dumps({"error": {"message": f"{dict(request.headers)}{STEERING}", "code": 401}})
    )


def echo_encoded(request: Request) -> Failure:
    """The key as gateways and their logs have it: in base64 and hex, and the end of it."""
    key = next(value for value in request.headers.values() if KEY in value).split()[-1]
    return Failure(401, f"{[*encoded(key)]}, which ends with {key[-12:]} {STEERING}")


def encoded(key: str) -> Iterator[str]:
    for whole in (key, f"user:{key}", f"Bearer {key}", f"{key}:x"):
        for encode in (base64.b64encode, base64.urlsafe_b64encode, bytes.hex):
            text = encode(whole.encode())
            yield text if isinstance(text, str) else text.decode()


ECHOES: dict[str, Callable[[Request], Answer]] = {
    "whole": echo,
    "where a message of 500 characters is cut": lambda request: Failure(
        401, f"{'x' * 430} {request.headers} {STEERING}", headers={"x-echo": "1"}
    ),
    "as a page": echo_as_page,
    "inside a reply": echo_inside_a_reply,
    "logged between attempts": lambda request: Failure(503, f"{dict(request.headers)}{STEERING}"),
    "encoded": echo_encoded,
}
CLIENTS = ["fast", "openai", "headers", "google by name", "google"]


@asynccontextmanager
async def client(provider: Provider, kind: str) -> AsyncIterator[str | BaseChatModel]:
    """Each real client: by name, or as an object with a key of its own."""
    names = {"fast": "openai:gpt-4o-mini", "google by name": "google_genai:gemini-2.0-flash"}
    if kind in names:
        yield names[kind]
    elif kind == "headers":
        headers = {"api-key": KEY, "X-Auth": f"Token {KEY}"}
        async with chat_of("openai", provider, "none", default_headers=headers) as chat:
            yield chat
    else:
        async with chat_of(kind, provider, KEY) as chat:
            yield chat


def leaks(text: str) -> list[str]:
    """Return forbidden parts of a text: the key in any form, and terminal control characters."""
    forms = (KEY, KEY[:9], "kuchen/17", "Zwiebel%2Bkuchen", *encoded(KEY))
    found = [form for form in forms if form in text]
    return found + re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


@pytest.fixture
def keyed(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Provider:
    for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", provider.url)
    return provider


@pytest.mark.usefixtures("fast_retries")
@pytest.mark.parametrize("answer", ECHOES.values(), ids=ECHOES)
@pytest.mark.parametrize("kind", CLIENTS)
async def test_an_echoed_key_is_in_no_exception_and_in_no_file_of_a_run(
    keyed: Provider, tmp_path: Path, kind: str, answer: Callable[[Request], Answer]
) -> None:
    keyed.play(by=answer)
    out = tmp_path / "out"
    async with client(keyed, kind) as model:
        options: Any = {
            "aspects": ["consistency"],
            "models": {"*": model},
            "limit": 2,
            "attempts": 2,
        }
        with logging_to(out, None):
            done = await aevaluate("single", "demo", out=out, **options)
        with pytest.raises(ModelCallError) as caught:
            await single.build(models={"*": model}).compile().ainvoke({"task": TASK})
    assert keyed.requests, f"nothing reached the server: {caught.value!r}"
    assert KEY in str(keyed.requests[0].headers)
    assert len(done.failed) == 2
    assert leaks(str(done.failed)) == []
    names = {path.name for path in files_in(tmp_path)}
    assert {"results.jsonl", "run.json", "log.jsonl", "journal.sqlite"} <= names
    assert {path.name: leaks(contents(path)) for path in files_in(tmp_path)} == {
        name: [] for name in names
    }
    assert leaks("".join(traceback.format_exception(caught.value))) == []
    error: BaseException | None = caught.value
    while error is not None:
        assert leaks(f"{error} {error!r} {error.args!r}") == []
        error = error.__cause__


def test_an_echoed_key_is_not_shown(
    keyed: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the command line, up to every export, with an address that contains a password."""
    monkeypatch.chdir(tmp_path)
    keyed.play(by=echo)
    address = keyed.openai_url.replace("://", "://me:Pfannkuchen@")
    model = f"openai:gpt-4o-mini?base_url={address}"
    run = (
        "run",
        "single",
        "--data",
        "demo",
        "--limit",
        "2",
        "--aspects",
        "consistency",
        "--out",
        "out",
    )
    for command in (
        (*run, "--model", model, "--attempts", "1", "--verbose"),
        command_line(
            "report out --html page.html --markdown tables.md --csv csv --latex tables.tex"
        ),
        ("show", "out", "lighthouse-good"),
        ("journal", "out"),
    ):
        said = in_this_process(*command, cwd=tmp_path)
        assert leaks(said.stdout + said.stderr) == [], command
        assert "Pfannkuchen" not in said.stdout + said.stderr, command
    for path in files_in(tmp_path):
        assert leaks(contents(path)) == [], path
        assert "Pfannkuchen" not in contents(path), path


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def contents(path: Path) -> str:
    """Return a file's text, including compressed text in a page, and JSON strings decoded."""
    raw = path.read_bytes()
    if path.suffix == ".sqlite":
        with closing(sqlite3.connect(path)) as database:
            return "\n".join(database.iterdump())
    text = raw.decode(errors="replace")
    if path.suffix == ".html":
        packed = re.findall(r"H4sI[A-Za-z0-9+/=]+", text)
        assert packed
        return "\n".join(gzip.decompress(base64.b64decode(one)).decode() for one in packed) + text
    if path.suffix in (".json", ".jsonl"):
        lines = [str(json.loads(line)) for line in text.splitlines() if path.suffix == ".jsonl"]
        return "\n".join(lines) or text
    return text


@pytest.mark.parametrize(("text", "shown"), [
    ("https://host/v1?api_key=abc&n=1", "https://host/v1?api_key=***&n=1"),
    ("https://host/models/m:generate?key=abc", "https://host/models/m:generate?key=***"),
    ("postgresql://me:pw@host/db", "postgresql://me:***@host/db"),
    ("postgresql://me@host/db", "postgresql://me@host/db"),
    ("https://ghtoken@host/db", "https://***@host/db"),
    ("Authorization: Bearer abc", "Authorization: Bearer ***"),
    ("authorization: Basic bWU6cHc=", "authorization: Basic ***"),
    ('"Authorization": "Custom abc"', '"Authorization": "***"'),
    ('{\\"x-api-key\\": \\"abc\\"}', '{\\"x-api-key\\": \\"***\\"}'),
    ("x-goog-api-key: abc", "x-goog-api-key: ***"),
    ("[(b'x-api-key', b'abc'), (b'n', b'1')]", "[(b'x-api-key', b'***'), (b'n', b'1')]"),
    ("ChatX(api_key='abc', n=1)", "ChatX(api_key='***', n=1)"),
    ("cookie: session=abc; other=def", "cookie: ***"),
    ("aws_secret_access_key=abc", "aws_secret_access_key=***"), ("sk-proj-abcdefgh1", "***"),
    ("a\x1b[31mb\x07\u202ec\nd", "a\\x1b[31mb\\x07\\u202ec\nd"),
])  # fmt: skip
def test_keys_are_known_by_their_place_and_form(text: str, shown: str) -> None:
    assert redact(text) == shown
    assert redact(shown) == shown


NO_KEYS = [
    "max_tokens: 4096 is above the limit of 2048 tokens",
    "OPENAI_API_KEY is not set, and the model openai:gpt-4o-mini cannot be called without it",
    "{'message': 'wrong', 'code': 'invalid_api_key', 'type': 'invalid_request_error'}",
    "runs/sk-evaluation holds no run",
    "the key was refused: check it",
    "é, 漢字 and 🎓 are no control characters",
    "none of them",  # where a key of the environment is the word "none"
]


def test_what_is_no_key_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert [redact(text) for text in NO_KEYS] == NO_KEYS


@pytest.mark.parametrize("error", [
    *(JurygraphError, UsageError, DataError, StoppedError, ModelCallError, JournalError),
    lambda words: TransientCallError(words, retry_after=2.0), lambda words: ReplyError(words, "mumble"),
    lambda words: InputError.from_faults("a task", [Fault("missing", ("source",), words, words)]),
    lambda words: ResponseError(words, 500, body={"error": {"message": words}}),
])  # fmt: skip
def test_every_error_is_redacted_here_and_in_another_process(
    error: Callable[[str], Exception],
) -> None:
    remember_secrets({"api_key": KEY})
    made = error(f"wrong: {KEY} {STEERING}")
    assert "wrong: ***" in str(made)
    sent = pickle.loads(pickle.dumps(made)) if isinstance(made, JurygraphError) else made
    for one in (made, sent):
        assert leaks(f"{one} {one!r} {one.args} {vars(one)}") == []


@pytest.mark.parametrize(
    "where",
    ["?api_key={}", "?temperature=api_key={}", "?base_url=http://me:{}@host&temperature=hot"],
)
def test_a_key_in_a_bad_setting_is_not_quoted(where: str) -> None:
    with pytest.raises(InputError) as caught:
        single.build(models={"*": f"openai:gpt-4o-mini{where.format('Apfelmus')}"})
    error = caught.value
    assert "models" in str(error)
    assert "Apfelmus" not in f"{error} {error!r} {error.errors()} {error.faults} {error.json()}"


def test_parts_of_a_key_are_hidden_also_encoded_but_no_file_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = "Zwiebel+kuchen/17aBcD_3fg"
    monkeypatch.setenv("SOME_API_KEY", key)
    monkeypatch.setenv("SOME_CREDENTIALS", "/srv/judging/credentials.json")
    for size in range(12, len(key) + 1):
        for at in range(len(key) - size + 1):
            assert redact(f"<{key[at : at + size]}>") == "<***>"
    for text in encoded(key):
        assert redact(f"<{text}> {text[7:]}") == "<***> ***"
    assert redact(f"{key[:11]} in /srv/judging/out") == f"{key[:11]} in /srv/judging/out"


def test_plain_data_and_an_error_of_an_older_run_are_redacted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = {"name": "m", "base_url": "http://me:pw@host", "api_key": "abc"}
    redacted = {"name": "m", "base_url": "http://me:***@host", "api_key": "***"}
    assert redact_all({"models": {"*": model}, "n": 2}) == {"models": {"*": redacted}, "n": 2}
    monkeypatch.setenv("MY_TOKEN", KEY)
    line = json.dumps(
        {"item": "a", "protocol": "single", "status": "failed", "error": f"x {KEY} {STEERING}"}
    )
    assert leaks(str(Result.model_validate_json(line).error)) == []


@pytest.mark.usefixtures("one_attempt")
async def test_a_key_of_any_name_is_hidden_too(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = "Quark+Knoedel/23"
    monkeypatch.setenv("MY_OWN_LLM", odd)
    provider.play(
        by=lambda request: Failure(400, f"no: {request.headers['authorization'].split()[-1]}")
    )
    graph = single.build(models={"*": "openai:gpt-4o-mini?key_env=MY_OWN_LLM"}).compile()
    with pytest.raises(ModelCallError, match=r"no: \*\*\*") as caught:
        await graph.ainvoke({"task": TASK})
    assert odd not in "".join(traceback.format_exception(caught.value))
