"""Test every protocol with a small language model: ``local``, of 135 million parameters.

Its verdicts are worth nothing, but its behaviour is real: replies, log-probabilities, loops and
disobedience. No test expects a certain verdict; each item is judged or fails with a reason,
according to the server's real answers.
"""

import json
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from jurygraph.eval import Evaluation, evaluate
from jurygraph.eval.datasets.dataset import load_dataset
from jurygraph.eval.journal import records
from jurygraph.eval.results.results import Result
from jurygraph.graphs.engine.registry import protocol_names
from jurygraph.nodes.models import local_model, openai_fast
from jurygraph.nodes.models.call import Reply
from jurygraph.state import Aspect
from jurygraph.state.errors import UsageError
from jurygraph.state.settings import ModelSpec
from jurygraph.state.verdict_warnings import LOCAL_DISCLOSURE

from .processes import HANG_GUARD

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
OF_KIND = {
    "score": ("topical-chat", "source", "candidate"),
    "compare": ("llmbar", "question", "answer_1", "answer_2"),
}
"""The published data of each kind, and their texts."""


def _missing() -> str:
    try:
        local_model.check(ModelSpec(name="local"))
    except UsageError as error:
        return str(error)
    needed = ("topical_chat/topical_chat.jsonl", "llmbar/instances.jsonl.gz")
    return "" if all((DATA / name).is_file() for name in needed) else f"no data at {DATA}"


pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(bool(_missing()), reason=_missing()),
    pytest.mark.usefixtures("socket_enabled"),
    pytest.mark.filterwarnings("ignore::jurygraph.eval.datasets.reading.ReadingNotice"),
]

POINTS = {"max_tokens": 200}
SHORT = {"max_tokens": 40}
"""A courtroom judge gives twelve named points; other replies are short, since the model loops."""
UNSWAPPED = {"position_calibration": False, **SHORT}

SETTINGS: Any = {
    **{name: {"n": 1, **SHORT} for name in ("debate", "multiagent")}, "single": UNSWAPPED,
    "ensemble": {"referees": 2, **UNSWAPPED}, "chateval": {"turns": 1, **UNSWAPPED},
    "faireval": {"k": 1, **SHORT},
    "geval": {"steps": ["Read both texts.", "Give a score."], "weighting": "logprobs", "max_tokens": 4},
    "baseline": POINTS, "more": {"advocates": 1, "max_tokens": 60},
    "samre": {"max_rounds": 1, "jurors": 2, "max_tokens": 60},
    "calibrated": {"of": "single", "inner": UNSWAPPED},
    "repeated": {"of": "single", "k": 2, "inner": UNSWAPPED},
    "cascade": {"cheap_settings": UNSWAPPED, "expensive_settings": {"n": 1, **SHORT}},
}  # fmt: skip

SCORED = ("cascade", "checklist", "debate", "geval", "repeated", "single")
"""The protocols that score one text; the others compare two."""

RUBRIC = Aspect.model_validate(
    {
        "name": "coherence",
        "criteria": "Whether the reply fits the conversation.",
        "rubric": [{"criterion": "The reply is about the last message."}],
    }
)
"""The aspect of ``checklist``, which has nothing to ask without a rubric."""

PLAIN = ("single", "debate", "chateval", "geval")
"""The protocols that are also asked in words, where only the limit bounds a reply."""

PATIENT = 2 * HANG_GUARD
"""Seconds for one request, enough for any busy machine."""

BY_MODELS = [name for name in protocol_names() if name != "review"]
"""All protocols except the one that pauses for a human, which a run over data cannot do."""


def items(kind: str, size: int = 1) -> list[dict[str, Any]]:
    name, *texts = OF_KIND[kind]
    found = [
        {key: getattr(item, key) for key in ("id", *texts)}
        for item in load_dataset(name, DATA)
        if all(getattr(item, text) for text in texts)
    ]
    return sorted(found, key=lambda item: sum(map(len, item.values())))[:size]


@dataclass
class Judged:
    """A run, the bodies of all chat completions of the server, and the journal's replies."""

    structured: str
    results: Sequence[Result]
    answers: list[dict[str, Any]]
    journal: list[Reply]


def answered(patch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Bodies of all chat completions that come from now on."""
    answers: list[dict[str, Any]] = []
    completion = openai_fast.completion

    def recorded(*response: Any) -> dict[str, Any]:
        answers.append(completion(*response))
        return answers[-1]

    patch.setattr(openai_fast, "completion", recorded)
    return answers


def kept(folder: Path) -> list[Reply]:
    """Return all replies of a run's journal in order, including unusable ones."""
    with closing(sqlite3.connect(folder / "journal.sqlite")) as journal:
        rows = journal.execute("SELECT reply FROM jurygraph_calls ORDER BY number").fetchall()
    return [records.from_bytes(reply, "local") for (reply,) in rows]


def run(names: Any, kind: str, size: int = 1, **options: Any) -> Evaluation:
    """Judge this many items of a kind with the model, one call at a time."""
    options.setdefault("aspects", ["coherence"] if kind == "score" else [])
    options |= {"models": {"*": "local"}, "concurrency": 1, "timeout": PATIENT}
    return evaluate(names, items(kind, size), **options)


@pytest.fixture(scope="module", params=["auto", "off"])
def judged(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Judged]:
    """Every protocol and wrapper on one item, or some in words; one call at a time."""
    asked = BY_MODELS if request.param == "auto" else PLAIN
    with pytest.MonkeyPatch.context() as patch:
        whole = Judged(request.param, [], answered(patch), [])
        scored = [name for name in asked if name in SCORED and name != "checklist"]
        compared = [name for name in asked if name not in SCORED]
        rubrics = [name for name in asked if name == "checklist"]
        runs: list[tuple[str, Any, Any]] = [
            ("score", scored, ["coherence"]),
            ("score", rubrics, [RUBRIC]),
            ("compare", compared, []),
        ]
        for kind, names, aspects in runs:
            if not names:
                continue
            settings = {
                "structured": request.param,
                **{name: SETTINGS.get(name, SHORT) for name in names},
            }
            folder = tmp_path_factory.mktemp(f"{request.param}-{kind}")
            done = run(names, kind, settings=settings, out=folder, aspects=aspects)
            assert done.stopped is None
            assert len(done.results) == len(names)
            whole.results = [*whole.results, *done.results]
            whole.journal += kept(folder)
    yield whole
    told = Counter(result.status for result in whole.results)
    print(f"structured={request.param}: {dict(told)}, {len(whole.answers)} calls")


def test_everything_is_judged_on_the_scale_and_with_a_warning_or_fails_with_a_reason(
    judged: Judged,
) -> None:
    failed = [result for result in judged.results if result.status == "failed"]
    # In words, a model of this size reaches the limit or digresses, and all of it may fail.
    if judged.structured == "auto":
        assert len(judged.results) - len(failed) >= 5, [result.error for result in failed]
    for result in judged.results:
        assert result.cost_usd == 0.0
        if result.status == "failed":
            # A panel without a quorum names the unreadable reply of each member.
            assert re.match(r"(?s)(Reply|Quorum)Error: \w.* Raw reply: ", result.error or ""), (
                result.error
            )
            assert (result.score, result.scores, result.winner) == (None, None, None)
        else:
            assert LOCAL_DISCLOSURE in result.warnings
            assert result.winner in ("1", "2", "tie") or 1 <= (result.score or 0) <= 5
            assert (result.winner is None) is (result.aspect is not None)
        for turn in result.transcript:
            values = turn["value"] if isinstance(turn["value"], list) else [turn["value"]]
            low, high = turn.get("scale") or (-math.inf, math.inf)
            assert all(low <= value <= high for value in values if isinstance(value, int | float))


def test_the_journal_holds_what_the_server_answered(judged: Judged) -> None:
    texts = [answer["choices"][0]["message"]["content"] for answer in judged.answers]
    usages = [answer["usage"] for answer in judged.answers]
    tokens = [(usage["prompt_tokens"], usage["completion_tokens"]) for usage in usages]
    replies = [
        (reply.text, (reply.usage.input_tokens, reply.usage.output_tokens))
        for reply in judged.journal
    ]
    assert Counter(replies) == Counter(zip(texts, tokens, strict=True))


def test_no_value_is_read_from_a_reply_that_was_cut_off(judged: Judged) -> None:
    choices = [answer["choices"][0] for answer in judged.answers]
    ended = {(one["message"]["content"].strip(), one["finish_reason"]) for one in choices}
    # G-Eval asks for one whole number of the scale only, so the limit does not truncate it.
    cut_off = {text for text, how in ended if how == "length" and not re.fullmatch("[1-5]", text)}
    whole = {text for text, how in ended if how == "stop"}
    for result in judged.results:
        for turn in result.transcript if result.status == "ok" else ():
            # A sample that cannot be read is left out, and stays in the transcript.
            if turn["model"] is not None and ("sample" not in turn or turn["value"] is not None):
                assert turn["content"].strip() not in cut_off - whole


def test_the_weighted_score_is_what_log_probabilities_say(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = answered(monkeypatch)
    done = run("geval", "score", 2, settings=SETTINGS["geval"])
    for result, answer in zip(done.results, answers, strict=True):
        likely = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        weights = dict.fromkeys(range(1, 6), 0.0)
        for token in likely:
            if token["token"].strip() in ("1", "2", "3", "4", "5"):
                weights[int(token["token"])] += math.exp(token["logprob"])
        on_the_scale = sum(weights.values())
        # This model would usually start a sentence, but is restricted to a number; there is no
        # score.
        if on_the_scale >= 0.5:
            expected = sum(value * weight for value, weight in weights.items()) / on_the_scale
            assert result.score == pytest.approx(expected, abs=1e-9)
        else:
            assert result.status == "failed"
            assert f"{1 - on_the_scale:.0%} of the probability is off the scale" in (
                result.error or ""
            )


def test_a_process_has_one_server_that_answers_nobody_without_its_key() -> None:
    parameters = local_model.LocalParameters()
    server = local_model.server(parameters)
    assert local_model.server(parameters) is server
    assert server.url.startswith("http://127.0.0.1:")
    body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
    url = f"{server.url}/chat/completions"
    wrong_key = {"Authorization": "Bearer x"}
    with pytest.raises(HTTPError, match="401"):
        urlopen(Request(url, json.dumps(body).encode(), wrong_key))


def test_weights_that_are_not_whole_are_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    with local_model.LocalParameters().weights.open("rb") as file:
        broken.write_bytes(file.read(100_000))
    with pytest.raises(UsageError, match=r"cannot serve .*is the file complete"):
        local_model.server(local_model.LocalParameters(model_path=str(broken)))
