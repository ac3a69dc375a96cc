"""The tests that every extension of jurygraph passes, for the four of this package."""

from typing import Any

from acme_judging import two_judges
from acme_judging.brevity import brevity
from acme_judging.provider import chat_model
from acme_judging.weather import weather
from jurygraph.testing import DatasetContract, MetricContract, ProtocolContract, ProviderContract


class TestTwoJudges(ProtocolContract):
    protocol = two_judges
    settings = ({}, {"rounds": 3})

    def agreeing_reply(self, metadata: Any, prompt: str) -> Any:
        if metadata["form"] == "grade":
            return {"grounds": "It is plain.", "grade": 3}
        return super().agreeing_reply(metadata, prompt)

    objecting_reply = agreeing_reply


class TestBrevity(MetricContract):
    metric = brevity
    parameters = {"words": 10}


class TestWeather(DatasetContract):
    dataset = weather


class TestAcme(ProviderContract):
    provider = chat_model
    model = "acme:large"
    environment = {"ACME_API_KEY": "any"}
    can_be_called = True
