"""The contract of a model provider, as a class of tests to subclass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest
from langchain_core.language_models import BaseChatModel

from ..state import UsageError
from ..state.settings import ModelSpec

# Values that occur nowhere else in a model's fields.
SAMPLES: Mapping[str, Any] = {"top_p": 0.4375, "seed": 7919, "max_tokens": 1237}
TEMPERATURE = 0.3125


class ProviderContract:
    """Tests that every model provider passes.

    The provider makes a LangChain chat model that sends one request per call, names a missing key,
    and uses or refuses each parameter.

    Attributes:
        provider: the function that the entry point names: from a ``ModelSpec`` to a chat model.
        model: a whole model name, such as ``"acme:large"``.
        environment: the environment variables with the keys that the provider needs, and any
            values for them.
        can_be_called: whether the tests may call the model. Set it only for a model that needs no
            network, or in tests that may spend money.

    >>> from langchain_core.language_models import FakeListChatModel
    >>> def chat_model(spec: ModelSpec) -> BaseChatModel:
    ...     return FakeListChatModel(responses=[f"{spec.name}: Score: 4"])
    >>> class TestMyProvider(ProviderContract):
    ...     provider = chat_model
    ...     model = "mine:large"
    ...     can_be_called = True
    """

    provider: ClassVar[Callable[[ModelSpec], BaseChatModel]]
    model: ClassVar[str]
    environment: ClassVar[Mapping[str, str]] = {}
    can_be_called: ClassVar[bool] = False

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a test with ``variable`` for each environment variable."""
        if "variable" in metafunc.fixturenames:
            metafunc.parametrize("variable", sorted(self.environment))

    @pytest.fixture(autouse=True)
    def _keys(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)

    def _made(self, **parameters: Any) -> BaseChatModel:
        # From the class: from an object, a function would be bound as a method.
        provider = getattr(type(self), "provider", None)
        name = getattr(type(self), "model", None)
        if provider is None or name is None:
            raise UsageError(
                f"{type(self).__name__} names no provider: add `provider = chat_model` "
                'and `model = "acme:large"`'
            )
        made: BaseChatModel = provider(ModelSpec(name=name, **parameters))
        return made

    def test_it_makes_a_chat_model(self) -> None:
        assert ":" in self.model
        assert isinstance(self._made(), BaseChatModel)

    def test_each_call_makes_a_model_of_its_own(self) -> None:
        """Because every event loop needs its own connections."""
        assert self._made() is not self._made()

    def test_a_missing_key_is_named(self, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(variable)
        with pytest.raises(UsageError, match=variable):
            self._made()

    def test_the_temperature_reaches_the_model(self) -> None:
        """jurygraph always gives one, and 0 by default."""
        assert str(TEMPERATURE) in _fields(self._made(temperature=TEMPERATURE))
        self._made(temperature=0)

    @pytest.mark.parametrize("parameter", list(SAMPLES))
    def test_a_parameter_is_used_or_refused(self, parameter: str) -> None:
        value = SAMPLES[parameter]
        try:
            made = self._made(**{parameter: value})
        except UsageError as refused:
            assert parameter in str(refused)
        else:
            assert str(value) in _fields(made), (
                f"{parameter} is dropped: give it to the model, or raise a UsageError that names it"
            )

    def test_a_call_is_one_request_without_a_time_limit(self) -> None:
        """The run retries failed calls and limits their time."""
        made = self._made()
        assert getattr(made, "max_retries", 0) == 0
        assert getattr(made, "request_timeout", None) is None

    @pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
    def test_it_answers(self, is_async: bool) -> None:
        if not self.can_be_called:
            pytest.skip("set can_be_called = True to call the model")
        made = self._made()
        question = "Rate the text `It rained.` from 1 to 5."
        reply = asyncio.run(made.ainvoke(question)) if is_async else made.invoke(question)
        assert str(reply.text).strip()


def _fields(model: BaseChatModel) -> str:
    """Return the values of a model's fields as one text."""
    return str(model.model_dump())
