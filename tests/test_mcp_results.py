"""Test the results of MCP tools on a server, with a stand-in for LangGraph's server."""

import json
from typing import Any

import httpx
import pytest

pytest.importorskip("starlette")

from jurygraph.adapters.langgraph_server import VerdictsOverMcp
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

VERDICT = {"protocol": "debate", "kind": "score", "score": 2.0, "explanation": "1781 is no «typo»."}
ENDS: dict[str, Any] = {
    "debate": {"verdict": VERDICT, "transcript": ["long"] * 50, "scores": [2.0], "round": 1},
    "notes": {"notes": ["kept"]},
    "broken": {"__error__": {"error": "InputError", "message": "task.candidate: is empty"}},
    "asking": {"__interrupt__": [{"id": "1", "value": {"question": "Your verdict, please: 1 to 5."}}]},
}  # fmt: skip


class Server:
    """A server with LangGraph's routes whose runs end as in ``ENDS``; it takes one key."""

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []
        self.passed_on: list[Any] = []
        routes = [
            Route("/assistants/search", self.search, methods=["POST"]),
            Route("/runs/wait", self.run, methods=["POST"]),
            Route("/mcp", self.mcp, methods=["GET", "POST"]),
        ]
        self.app = Starlette(routes=routes, middleware=[Middleware(VerdictsOverMcp)])

    async def search(self, request: Request) -> JSONResponse:
        if request.headers.get("x-api-key") != "secret":
            return JSONResponse({"detail": "no key"}, 403)
        names = [*ENDS, "two words", "twice", "twice"]
        return JSONResponse([{"assistant_id": f"id of {name}", "name": name} for name in names])

    async def run(self, request: Request) -> JSONResponse:
        assert request.headers["x-api-key"] == "secret"
        asked = await request.json()
        self.runs.append(asked)
        name = asked["assistant_id"].removeprefix("id of ")
        if "task" not in asked["input"]:
            return JSONResponse({"detail": "the input has no task"}, 422)
        return JSONResponse(ENDS.get(name, {}))

    async def mcp(self, request: Request) -> JSONResponse:
        self.passed_on.append(await request.json() if request.method == "POST" else None)
        return JSONResponse({"from": "the server itself"})

    async def post(self, body: Any, path: str = "/mcp", key: str = "secret") -> Any:
        app = Starlette(routes=[Mount("/prefix", self.app), Mount("/", self.app)])
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            sent = {"x-api-key": key, "content-type": "application/json"}
            content = body if isinstance(body, bytes) else json.dumps(body)
            return (await client.post(path, content=content, headers=sent)).json()


def call(tool: str, arguments: Any = {"task": 1}, **further: Any) -> dict[str, Any]:  # noqa: B006
    params = {"name": tool, "arguments": arguments, **further}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


@pytest.mark.parametrize("path", ["/mcp", "/prefix/mcp"])
async def test_a_tool_returns_the_verdict_as_compact_json(path: str) -> None:
    server = Server()
    answer = await server.post(call("debate", context={"n": 1}), path)
    text = '{"protocol":"debate","kind":"score","score":2.0,"explanation":"1781 is no «typo»."}'
    assert answer == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {"content": [{"type": "text", "text": text}]},
    }
    assert server.runs == [
        {"assistant_id": "id of debate", "input": {"task": 1}, "context": {"n": 1}}
    ]
    assert server.passed_on == []


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("broken", {"task": 1}, "InputError: task.candidate: is empty"),
        ("asking", {"task": 1}, "paused to ask a human (Your verdict, please: 1 to 5.)"),
        ("debate", {}, "the input has no task"),
    ],
)
async def test_an_error_is_told_in_words(tool: str, arguments: Any, text: str) -> None:
    result = (await Server().post(call(tool, arguments)))["result"]
    assert result["isError"]
    assert text in result["content"][0]["text"]


async def test_a_graph_without_a_verdict_returns_all_it_has() -> None:
    result = (await Server().post(call("notes")))["result"]
    assert json.loads(result["content"][0]["text"]) == ENDS["notes"]
    assert "isError" not in result


async def test_names_are_those_that_the_server_lists() -> None:
    server = Server()
    await server.post(call("two_words"))
    assert [run["assistant_id"] for run in server.runs] == ["id of two words"]


@pytest.mark.parametrize(
    ("body", "key"),
    [
        (call("unknown"), "secret"),
        (call("twice"), "secret"),
        (call("debate"), "wrong"),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, "secret"),
        ({**call("debate"), "id": None}, "secret"),
        ({**call("debate"), "params": ["debate"]}, "secret"),
        ([call("debate")], "secret"),
    ],
    ids=["unknown", "twice", "no rights", "list", "notification", "params", "batch"],
)
async def test_all_else_is_answered_by_the_server_itself(body: Any, key: str) -> None:
    server = Server()
    assert await server.post(body, key=key) == {"from": "the server itself"}
    # It reads the whole request.
    assert (server.runs, server.passed_on) == ([], [body])
