"""Short MCP results of graphs on a LangGraph server: the verdict as JSON, and errors as text.

A LangGraph server offers each graph as an MCP tool at ``/mcp``. By itself, it writes a result as
Python does, with the whole transcript, and of an error only the type. ``VerdictsOverMcp`` is
middleware for the server's HTTP app that answers calls of tools with the verdict alone. Without an
HTTP app of your own, use ``app`` in ``langgraph.json``::

    "http": {"app": "jurygraph.adapters.langgraph_server:app"}

With an app of your own, add the middleware: ``app.add_middleware(VerdictsOverMcp)``. Needs the
extra ``studio``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_MOST_ASSISTANTS = 1000
"""The maximum number of assistants that a server lists at once."""


class VerdictsOverMcp:
    """Middleware that runs the tools of a server's MCP endpoint and shortens their results.

    It runs a tool with requests to the same server, which have the headers of the caller. The
    server therefore applies its own authentication to them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a call of a tool, and pass everything else on."""
        root = scope.get("root_path", "")
        if scope.get("method") != "POST" or scope["path"] not in ("/mcp", f"{root}/mcp"):
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        body = await request.body()
        result = await _called(request, _tool_call(body))
        if result is None:
            await self.app(scope, _read_again(body, receive), send)
            return
        await JSONResponse(result)(scope, receive, send)


def _read_again(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that begins with a body that was already read."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


def _tool_call(body: bytes) -> Mapping[str, Any] | None:
    """Return the call of a tool in a request, or None for any other request."""
    try:
        message = json.loads(body)
    except ValueError:
        return None
    is_call = isinstance(message, Mapping) and message.get("method") == "tools/call"
    return message if is_call and message.get("id") is not None else None


async def _called(request: Request, call: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Run a tool and return the response; None if the server itself has to answer."""
    given = call.get("params") if call is not None else None
    if call is None or not isinstance(given, Mapping):
        return None
    base = request.scope["path"].removesuffix("/mcp")
    # The length and the form of the body are those of the request here.
    of_body = ("content-length", "content-type", "transfer-encoding", "accept")
    headers = [(name, value) for name, value in request.headers.items() if name not in of_body]
    server = httpx.ASGITransport(
        app=request.scope["app"], root_path=request.scope.get("root_path", "")
    )
    async with httpx.AsyncClient(
        transport=server, base_url=f"http://server{base}", headers=headers
    ) as client:
        listed = await client.post("/assistants/search", json={"limit": _MOST_ASSISTANTS})
        assistants = listed.json() if listed.is_success else []
        found = [one for one in assistants if _tool_name(one["name"]) == given.get("name")]
        # The server has its own words for an unknown tool, and for a caller without rights.
        if len(found) != 1:
            return None
        run = {"assistant_id": found[0]["assistant_id"], "input": given.get("arguments", {})}
        if given.get("context") is not None:
            run["context"] = given["context"]
        ended = await client.post("/runs/wait", json=run)
    text, is_error = _told(ended)
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    if is_error:
        result["isError"] = True
    return {"jsonrpc": "2.0", "id": call["id"], "result": result}


def _tool_name(assistant: str) -> str:
    """Return the name of an assistant's tool, as the server lists it."""
    return re.sub(r"[^\w.-]", "", re.sub(r"\s+", "_", assistant.strip()), flags=re.ASCII)[:128]


def _told(ended: httpx.Response) -> tuple[str, bool]:
    """Return the text for a run's end, and whether it is an error."""
    value = ended.json()
    if not isinstance(value, Mapping):
        return _compact(value), ended.is_error
    if ended.is_error:
        return str(value.get("detail", ended.text)), True
    if fault := value.get("__error__"):
        return f"{fault['error']}: {fault['message']}", True
    if pauses := value.get("__interrupt__"):
        asked = pauses[0].get("value")
        question = asked.get("question") if isinstance(asked, Mapping) else asked
        return (
            f"No result: the graph paused to ask a human ({question}), and a tool's call cannot be "
            "resumed. Choose a setting without a pause, such as on_unresolved=last, or run the "
            "graph on a thread."
        ), True
    return _compact(value.get("verdict") or value), False


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


app = Starlette(middleware=[Middleware(VerdictsOverMcp)])
"""An HTTP app without routes of its own, for ``langgraph.json``."""
