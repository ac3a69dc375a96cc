"""Lines that type checkers must refuse, each with the error that they give. Nothing here is run.

An ignored error that is none is an error itself: ``warn_unused_ignores`` in mypy's strict mode, and
``reportUnnecessaryTypeIgnoreComment`` in pyright. ``mypy tests`` and ``tests/test_types.py`` look.
"""

from jurygraph import AnswerGate, create_async_judge, create_judge
from jurygraph.eval import evaluate, redteam, versus
from jurygraph.graphs import calibrated, cascade, chateval, debate, geval, repeated, review, samre
from jurygraph.graphs.wrappers.repeated import build as build_repeats
from jurygraph.nodes.models.providers import Client, Provider


def names(name: str) -> None:
    create_judge("debatte", aspect="fluency")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    create_judge(name, aspect="fluency")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    create_judge("mine.py", aspect="fluency")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    create_async_judge("debatte")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    evaluate("debatte", "demo")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    evaluate(name, "demo")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    evaluate(["debate", "singel"], "demo")  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    evaluate({"mine": "singel"}, "demo")  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    versus("debatte", "demo")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    redteam(name)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    repeated("debatte", k=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    calibrated(name)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    cascade("single", "debatte")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    review("debatte")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def settings() -> None:
    create_judge("debate", aspect="fluency", personna="strict")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    create_judge("debate", aspect="fluency", persona="evil")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    create_judge("single", n=2)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    create_judge("samre", ballot="votes")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    create_judge(debate.graph, aspect="fluency", n=2)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    create_async_judge("more", advocate=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    create_async_judge("single", n=2)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    create_judge("debate", aspekt="fluency")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    create_judge("debate", aspect="fluency", max_calls="9")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    AnswerGate("single", "fluency", n=2)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    AnswerGate("debate", "fluency", on_reject="ignore")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    debate.build(nonsense=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    debate.build(persona="evil")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    debate.build(n="4")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    chateval.build(roles="codding")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    chateval.build(roles=["critic", "sientist"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    geval.build(weighting="logits")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    samre.build(juror=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    build_repeats(inner={"nn": 2})  # type: ignore[typeddict-unknown-key]  # pyright: ignore[reportArgumentType]
    repeated("debate", by="majority")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    evaluate("debate", "demo", settings={"personna": "strict"})  # type: ignore[typeddict-unknown-key]  # pyright: ignore[reportArgumentType]
    evaluate("debate", "demo", settings={"debate": {"persona": "evil"}})  # type: ignore[typeddict-item]  # pyright: ignore[reportArgumentType]
    evaluate("debate", "demo", aspect="fluency")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    create_judge("debate", aspect="fluency").node(candidat="draft")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    create_judge("debate", aspect="fluency").node(candidate=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def provider_records() -> None:
    Client(class_name="ChatAcme", bounds="list")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Client(class_name="ChatAcme", tool_bounds="nothing")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Client(class_name="ChatAcme", json_object=True)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Client("ChatAcme")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Provider(title="Acme", finish_reasons={"cutoff": ("length",)})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    Provider(title="Acme", finish_reasons={"cut_off": ("length")})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    Provider(title="Acme", refusals={"boundary": ("minimum",)})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    Provider(title="Acme", error_codes={"used_up": ("quota",)})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    Provider(title="Acme", statuses={"400": ("bad",)})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    Provider(title="Acme", finish_reason={})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
