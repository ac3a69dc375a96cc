"""The models of this package: the offline judge and the scripted model of tests."""

from __future__ import annotations

from .provider import Client, JsonSchema, Options, Provider


def _json_schema(asked: JsonSchema) -> Options:
    return {"json_schema": asked.schema}


OWN_MODELS = Provider(
    title="jurygraph",
    clients=(
        Client(class_name="OfflineJudge", json_schema=_json_schema),
        # It replies according to its script, whatever the request is.
        Client(class_name="ScriptedModel", json_schema=_json_schema),
    ),
)
