"""Test a judge as an evaluator of LangSmith, openevals and agentevals, with their packages."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from jurygraph import create_async_judge
from jurygraph.nodes.models.scripted_model import ScriptedModel
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langsmith import Client, aevaluate, evaluate
from langsmith.evaluation import EvaluationResult, evaluate_comparative
from langsmith.schemas import Example
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from .test_judge import SCORE_4, comparing, rating

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
DATASET = uuid4()
TENANT = uuid4()
EXAMPLES = [
    Example(
        id=uuid4(), inputs={"question": asked}, outputs=told, dataset_id=DATASET, created_at=WHEN
    )
    for asked, told in [
        ("Why is the sky blue?", {"answer": "scattering"}),
        ("Why is grass green?", {"answer": "chlorophyll"}),
    ]
]
pytestmark = [
    pytest.mark.filterwarnings("ignore:'upload_.*' parameter is in beta"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:langsmith"),
]


@pytest.fixture
def langsmith(httpserver: HTTPServer) -> Iterator[Client]:
    """LangSmith's client, and as much of its server as answers it."""
    httpserver.expect_request("/info").respond_with_json({"version": "0.13", "instance_flags": {}})
    httpserver.expect_request("/runs/multipart").respond_with_json({})
    httpserver.expect_request("/runs/batch").respond_with_json({})
    client = Client(api_url=httpserver.url_for(""), api_key="test-key")
    yield client
    client.flush()
    client.close()


# LangSmith: one run at a time


def answer(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"answer": f"{inputs['question']} Because."}


def results(rows: Any) -> list[EvaluationResult]:
    return [one for row in rows for one in row["evaluation_results"]["results"]]


def test_langsmith_evaluates_with_a_judge(langsmith: Client) -> None:
    judge = rating(normalize=True)
    rows = evaluate(
        answer, data=EXAMPLES, evaluators=[judge], upload_results=False, client=langsmith
    )
    told = results(rows)
    assert [(one.key, one.score, one.comment) for one in told] == [
        ("coherence", 0.75, "It holds together.\nScore: 4")
    ] * 2
    assert told[0].metadata is not None and told[0].metadata["stop_reason"] == "no_issue"


async def test_langsmith_evaluates_with_an_async_judge(langsmith: Client) -> None:
    async def target(inputs: dict[str, Any]) -> dict[str, Any]:
        return answer(inputs)

    model = ScriptedModel(script=SCORE_4)
    judge = rating(model=model, make=create_async_judge)
    rows = await aevaluate(
        target, data=EXAMPLES, evaluators=[judge], upload_results=False, client=langsmith
    )
    assert [one.score for one in results([row async for row in rows])] == [4.0, 4.0]
    assert all("Because." in call.prompt for call in model.calls)


def test_a_failed_verdict_has_no_langsmith_score(
    langsmith: Client, caplog: pytest.LogCaptureFixture
) -> None:
    judge = rating(script={"scorer": ["I would rather not."] * 99})
    rows = evaluate(
        answer, data=EXAMPLES[:1], evaluators=[judge], upload_results=False, client=langsmith
    )
    assert all(one.score is None for one in results(rows))
    assert "I would rather not." in caplog.text and "No score was given" in caplog.text


# LangSmith: two runs side by side


@pytest.fixture
def experiments(httpserver: HTTPServer, langsmith: Client) -> tuple[UUID, UUID]:
    """Two experiments on a LangSmith server, each with a run for every example."""
    sessions = uuid4(), uuid4()
    for number, session in enumerate(sessions):
        about = {
            "id": str(session),
            "name": f"e{number}",
            "tenant_id": str(TENANT),
            "start_time": str(WHEN),
        }
        httpserver.expect_request(f"/sessions/{session}").respond_with_json(
            {**about, "reference_dataset_id": str(DATASET)}
        )
    comparison = {
        "id": str(uuid4()),
        "tenant_id": str(TENANT),
        "reference_dataset_id": str(DATASET),
    }
    httpserver.expect_request("/datasets/comparative").respond_with_json(
        {**comparison, "created_at": str(WHEN), "modified_at": str(WHEN)}
    )
    httpserver.expect_request("/examples").respond_with_json(
        [json.loads(example.model_dump_json(exclude={"attachments"})) for example in EXAMPLES]
    )
    httpserver.expect_request("/sessions").respond_with_json([about])

    def runs(request: Request) -> Response:
        (session,) = json.loads(request.get_data())["session"]
        found = [
            {
                "id": str(uuid4()),
                "name": "target",
                "run_type": "chain",
                "start_time": str(WHEN),
                "session_id": session,
                "trace_id": str(uuid4()),
                "dotted_order": "1",
                "inputs": example.inputs,
                "outputs": {"answer": f"of {sessions.index(UUID(session))}"},
                "reference_example_id": str(example.id),
            }
            for example in EXAMPLES
        ]
        return Response(json.dumps({"runs": found, "cursors": {}}), content_type="application/json")

    httpserver.expect_request("/runs/query").respond_with_handler(runs)
    httpserver.expect_request("/feedback").respond_with_json({})
    httpserver.expect_request("/feedback/batch").respond_with_json({})
    return sessions


def test_langsmith_compares_experiments_by_a_judge(
    experiments: tuple[UUID, UUID], langsmith: Client
) -> None:
    judge = comparing()
    alone: Any = {"randomize_order": True, "max_concurrency": 0}
    compared = evaluate_comparative(experiments, evaluators=[judge], client=langsmith, **alone)
    for example in EXAMPLES:
        found = compared[example.id]["feedback.preference"]
        # The first that is shown wins, whichever that is.
        assert list(found.scores.values()) == [1.0, 0.0]
        assert set(found.scores) == {run.id for run in compared[example.id]["runs"]}
        assert "Score of answer 1: 8" in str(found.comment)


# openevals and agentevals


def test_the_result_has_the_shape_of_an_openevals_judge() -> None:
    llm = pytest.importorskip("openevals.llm")
    from openevals.types import EvaluatorResult

    class Structured(ScriptedModel):
        def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
            return self | (lambda message: json.loads(message.content))

    model = Structured(script=lambda _about, _prompt: {"reasoning": "fine", "score": True})
    theirs = llm.create_llm_as_judge(
        prompt="{inputs} {outputs}", judge=model, feedback_key="coherence"
    )
    answers = {"outputs": {"answer": "Because."}, "reference_outputs": {"answer": "x"}}
    given = {"inputs": {"question": "Why?"}, **answers}
    ours = rating()(**given)
    other = theirs(**given)
    assert model.calls and set(ours) == set(other) == set(EvaluatorResult.__annotations__) - {
        "source_run_id"
    }
    assert all(type(ours[name]) is type(other[name]) for name in ("key", "comment"))


def app(message: Any, *, thread_id: str, **_: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": f"You said: {message['content']}", "id": str(uuid4())}


async def test_openevals_simulations_take_a_judge_for_the_conversation() -> None:
    simulators = pytest.importorskip("openevals.simulators")
    users = ["What happened to the ferry?", "When?"]
    judge = rating()
    talk: dict[str, Any] = {"app": app, "user": users, "max_turns": 2}
    done = simulators.run_multiturn_simulation(**talk, trajectory_evaluators=[judge])
    assert [(one["key"], one["score"]) for one in done["evaluator_results"]] == [("coherence", 4.0)]
    model = ScriptedModel(script=SCORE_4)
    twin = rating(model=model, make=create_async_judge)
    done = await simulators.run_multiturn_simulation_async(**talk, trajectory_evaluators=[twin])
    assert done["evaluator_results"][0]["score"] == 4.0
    shown = model.calls[0].prompt
    assert f"Human: {users[0]}\nAI: You said: {users[0]}\nHuman: When?" in shown


def test_agentevals_trajectories_of_a_thread_are_judged() -> None:
    utils = pytest.importorskip("agentevals.graph_trajectory.utils")
    speaker = GenericFakeChatModel(messages=iter([AIMessage("It sank on Monday.")]))
    agent: Any = create_agent(speaker, [], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [("user", "What happened to the ferry?")]}, thread)
    trajectory = utils.extract_langgraph_trajectory_from_thread(agent, thread)
    model = ScriptedModel(script=SCORE_4)
    where = {"source": "inputs.0.__start__.messages", "candidate": "outputs.results.-1.messages"}
    assert rating(model=model, variable_mapping=where)(**trajectory)["score"] == 4.0
    shown = model.calls[0].prompt
    assert "What happened to the ferry?" in shown and "It sank on Monday." in shown
