"""``jurygraph check-model``: what a model is tried with, what is said of it, and the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
from jurygraph.eval.cli.app import app
from typer.testing import CliRunner

from .loopback import Answer, Failure, Provider, Request, Text, Usage
from .loopback_debate import OPENAI
from .processes import in_this_process


def checked(name: str = OPENAI) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["check-model", name])
    return done.exit_code, " ".join(done.output.split())


def lacking(printed: str, *wanted: str) -> list[str]:
    return [words for words in wanted if words not in printed]


def able(request: Request) -> Answer:
    """A model that can do all."""
    if request.parameters.get("max_completion_tokens") or request.parameters.get("max_tokens"):
        return Text("one\ntwo\nthree", finish="length")
    cached = Usage(input=3000, cached=2048, output=20) if len(request.user) > 5000 else Usage()
    if request.form:
        return Text(fields={"reasoning": "It reads well.", "score": 4}, usage=cached)
    tops = ({"4": 0.75, "5": 0.25},) if request.parameters.get("logprobs") else ()
    return Text("It reads well.\nScore: 4", usage=cached, top=tops)


def test_a_model_that_can_do_all(provider: Provider) -> None:
    provider.play(by=able)
    code, printed = checked()
    assert (code, len(provider.requests)) == (0, 7)
    read, cached = "requested as JSON by a schema; a score was read (4)", "2,048 of 3,000 tokens"
    assert not lacking(printed, read, "supported: geval weights scores by them", cached)
    assert not lacking(printed, "several replies to one request", "known; this check took 7 calls")
    assert not lacking(printed, "a reply that was cut off is reported as such", "for JSON by a schema.")


def test_a_model_that_can_do_little_is_usable(provider: Provider) -> None:
    def by(request: Request) -> Answer:
        for field in ("temperature", "response_format", "tools", "logprobs"):
            if field in request.parameters:
                return Failure(400, f"Unsupported parameter: '{field}'", field, "unsupported_parameter")
        return Text("It reads well.\nScore: 4", usage=None)

    provider.play(by=by)
    code, printed = checked("openai:their-own-model")
    assert code == 0
    assert not lacking(printed, "geval takes samples", "add ?price_in=", "replies were asked for as text")
    assert not lacking(printed, "max_tokens=16 was ignored, or the cut was not reported")
    assert not lacking(printed, "their-own-model takes no temperature", "ask this model for words.")


def test_a_model_of_which_no_score_is_read_or_whose_key_is_refused_is_not_usable(provider: Provider) -> None:
    provider.play(by=lambda _: Text("I like ferries."))
    code, printed = checked()
    assert (code, "No judge can use this model" in printed) == (2, True)
    provider.requests.clear()
    provider.play(by=lambda _: Failure(401, "Incorrect API key provided.", code="invalid_api_key"))
    code, printed = checked()
    assert (code, "the key was refused: check it" in printed) == (2, True)
    assert len(provider.requests) == 1


@pytest.mark.parametrize(("name", "code"), [("offline", 0), ("nobody:knows", 2)])
def test_a_name_alone(name: str, code: int, tmp_path: Path) -> None:
    assert in_this_process("check-model", name, cwd=tmp_path).returncode == code
