"""Say what the callers of a LangGraph server may choose: what shapes a judgement, but no file, address or key.

Everything that a server's operator has bound with ``build`` holds as it is. A run's context comes from any caller
of the server; the operator opens more to callers by name: ``JURYGRAPH_SERVER_ALLOW=prompts,base_url``, or ``*``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from langgraph.runtime import get_runtime

from ..state.errors import UsageError
from ..state.settings import RefereeSettings, Settings

VARIABLE = "JURYGRAPH_SERVER_ALLOW"

PARAMETERS = {
    *("name", "temperature", "top_p", "top_k", "seed", "max_tokens"),
    *("reasoning_effort", "thinking_level", "thinking_budget", "verbosity"),
}
"""The parameters of a model that callers may choose. Others, some of which only its class knows, may hold an address,
name a variable with a key, or set a price that defeats a budget."""


def check_caller(context: object) -> None:
    """Check what a run's context asks for, where the run is one of a server.

    Raises:
        UsageError: something that only the operator may choose; says how to allow it.
    """
    if not isinstance(context, Settings) or not is_on_server():
        return
    allowed = {name.strip() for name in os.environ.get(VARIABLE, "").split(",")}
    refused = next((name for name in _only_for_operators(context) if not allowed & {name, "*"}), None)
    if refused is not None:
        raise UsageError(
            f"callers of this server may not choose {refused!r}; its operator can bind it (`build`), "
            f"or allow it to all callers: {VARIABLE}={refused}"
        )


def is_on_server() -> bool:
    """Tell whether the node that asks runs in a LangGraph server (``langgraph dev``, a deployment)."""
    # LangGraph tells its nodes so; where it does not, as in threads without its context, the server's package does.
    if "langgraph_api" in sys.modules:
        return True
    try:
        return get_runtime().server_info is not None
    except RuntimeError:  # called outside of a graph
        return False


def _only_for_operators(context: Settings) -> Iterator[str]:
    """Yield the names of what only an operator may choose. A form sends fields that are empty: these choose nothing."""
    if context.prompts:
        yield "prompts"
    if isinstance(context, RefereeSettings) and isinstance(context.roles, str) and "." in context.roles:
        yield "roles"
    for model in context.models.values():
        given = model.model_dump(exclude_none=True)
        yield from (name for name in given if name not in PARAMETERS)
