"""Lines that type checkers must let through: the same surface, used right. Nothing here is run."""

from typing import Any

from jurygraph import AnswerGate, Aspect, create_async_judge, create_judge
from jurygraph.adapters.langgraph_server import VerdictsOverMcp
from jurygraph.adapters.trl import reward
from jurygraph.eval import evaluate, redteam, versus
from jurygraph.graphs import (
    OwnText,
    ProtocolName,
    calibrated,
    cascade,
    chateval,
    debate,
    geval,
    load_graph,
    repeated,
    review,
    samre,
)
from jurygraph.graphs.wrappers.repeated import build as build_repeats
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state.settings import Role
from jurygraph.testing import JudgeSession
from langchain.agents.middleware import AgentMiddleware
from langgraph.graph import StateGraph
from starlette.applications import Starlette
from typing_extensions import TypedDict


def names(name: str, known: ProtocolName) -> None:
    create_judge("debate", aspect="coherence", model="openai:gpt-4o-mini", n=2)(
        inputs="Why?", outputs="So."
    )
    create_judge(load_graph(name, n=2), aspect="fluency", key="style")
    create_judge(load_graph(debate, n=2), aspect="fluency")
    create_judge(debate, aspect="fluency")
    create_judge(debate.graph, aspect="fluency")
    create_judge(repeated("debate", k=3), aspect=Aspect(name="wit", criteria="Does it amuse?"))
    create_async_judge("single", models={"*": ScriptedModel(script={})})
    create_async_judge("debate", aspect="fluency", persona="weak", n=2).judge.key.upper()
    evaluate("debate", "demo", aspects=["fluency"])
    evaluate(["debate"], ["demo", "demo-pairs"], models=["offline", {"*": "offline"}])
    evaluate(known, "demo")
    evaluate(load_graph("mine.py"), "demo")
    evaluate(["debate", single_of_its_own(), load_graph(name)], "demo")
    evaluate({"mine": debate.build(n=1), "theirs": "single"}, "demo", settings={"repair": 0})
    versus("debate", "demo", by="calls")
    redteam(load_graph(name))
    cascade("single", debate.build(n=1), gap=0.5)
    calibrated(debate)
    review(load_graph(name), when="gap<2")


def single_of_its_own() -> ProtocolName:
    return "single"


def settings() -> None:
    create_judge("debate", aspect="fluency", persona="weak", tie_breaker=True, structured="off")
    create_judge("debate", aspect="fluency", persona=OwnText("You are a nurse."), normalize=True)
    create_judge("chateval", referees=3, strategy="summarizer", criteria=["brevity"])
    create_judge("repeated", aspect="fluency", of="geval", inner={"samples": 5}, k=3)
    create_judge(
        "cascade", cheap="single", expensive="debate", when=["gap"], expensive_settings={"n": 2}
    )
    debate.build({"n": 2}, {"*": "offline"}, persona="plain")
    debate.build(model="offline", temperature=0.2)
    chateval.build(roles="coding")
    chateval.build(roles=["critic", Role(name="Nurse", description="You look after patients.")])
    chateval.build(roles=OwnText("roles.yaml"))
    geval.build(weighting="sampling", steps=["Read it.", "Rate it."])
    samre.build(jurors=3, backgrounds=["a farmer", "a nurse"])
    build_repeats({"of": "cascade", "inner": {"gap": 2, "cheap": "single"}}, k=2)
    build_repeats(of="faireval", inner={"k": 1, "models": "offline"})
    evaluate(
        "debate", "demo", settings={"n": 2, "debate": {"persona": "weak"}}, models={"*": "offline"}
    )


def limits_and_gates() -> None:
    judge = create_judge(
        "single", aspect="fluency", max_cost=1.5, max_calls=9, timeout=30, cache="a"
    )
    spent: tuple[int, int, float | None] = (
        judge.usage.calls,
        judge.usage.tokens,
        judge.usage.cost_usd,
    )
    print(spent, judge.aspect)
    gate = AnswerGate("debate", "fluency", n=2, persona="weak", model="offline", max_calls=3)
    gates = [
        gate,
        AnswerGate("samre", aspect=Aspect(name="wit", criteria="Funny?"), jurors=3, tries=1),
        AnswerGate(debate, "fluency", on_reject="pass", until=3),
        AnswerGate(judge, on_error="pass", replacement=lambda rejected: rejected["candidate"]),
        AnswerGate(create_async_judge("single", aspect="fluency"), after_tries="replace"),
    ]
    middleware: list[AgentMiddleware[Any, Any, Any]] = [*gates]
    print(middleware)


async def rewards() -> list[float | None]:
    judged = reward(create_judge("single", aspect="fluency"), ignore=["id"], rule="condorcet")
    return await judged(["Why?"], ["So."], id=[1])


def served(app: Starlette) -> None:
    app.add_middleware(VerdictsOverMcp)


def test_summary(judge: JudgeSession) -> None:
    judged = judge("single", aspect="fluency")(inputs="It rained.", outputs="Rain.")
    assert judged["score"] >= 4
    assert [turn["content"] for turn in judged.transcript]


class Draft(TypedDict):
    draft: str
    grade: float


def node() -> None:
    judge = create_judge("debate", aspect="fluency")
    StateGraph(Draft).add_node(
        "judge", judge.node(Draft, candidate="draft", score="grade")
    ).compile()
