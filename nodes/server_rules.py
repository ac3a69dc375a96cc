"""Say what the callers of a LangGraph server may choose and ask for, and check a run's context and task against it.

They choose what shapes a judgement, but no file, address or key, and a run takes no more calls and characters than
``CEILINGS`` say. What the server's operator has bound with ``build`` holds as it is. A run's context comes from any
caller of the server; the operator opens more to all callers by name:
``JURYGRAPH_SERVER_ALLOW=prompts,base_url,calls=500``, or ``*`` for everything.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Literal

from langchain_core.runnables import ensure_config
from langgraph.runtime import Runtime, get_runtime

from ..state.checked import Checked
from ..state.errors import UsageError
from ..state.settings import PAPERS, RefereeSettings, Settings
from ..state.settings.base_settings import unknown_keys

VARIABLE = "JURYGRAPH_SERVER_ALLOW"

PARAMETERS = {
    *("name", "temperature", "top_p", "top_k", "seed", "max_tokens"),
    *("reasoning_effort", "thinking_level", "thinking_budget", "verbosity"),
}
"""The parameters of a model that callers may choose. Others, some of which only its class knows, may hold an address,
name a variable with a key, or set a price that defeats a budget."""

CEILINGS = {"calls": 100, "characters": 200_000}
"""What a run may ask for at most: model calls, over all judges inside it, and characters of its task and of its context
(each). The bounds of single settings are beside them (``state/settings``)."""


def check_size(what: Literal["calls", "characters"], asked: int | Checked, bound: int = 0) -> None:
    """Check how much a run of a server asks for, or how long a task or a context is.

    What the operator has ``bound`` is allowed.

    Raises:
        UsageError: more than callers may ask for; says how much that is, and how to allow more.
    """
    given = _allowed()
    if "*" in given or not is_on_server():
        return
    if isinstance(asked, Checked):
        asked = len(asked.model_dump_json())
    ceiling = given.get(what) or str(CEILINGS[what])
    if not ceiling.isdecimal():
        raise UsageError(f"{VARIABLE} allows {what}={ceiling}, which is not a number")
    if asked > max(int(ceiling), bound):
        problem = f"this asks for {asked:,} {what}, but callers of this server may have {int(ceiling):,}"
        more = f"have its operator allow more to all callers: {VARIABLE}={what}={asked}"
        raise UsageError(f"{problem}; ask for less, or {more}")


def check_caller(context: object) -> None:
    """Check what a run's context asks for, where the run is one of a server.

    Raises:
        UsageError: something that only the operator may choose; says how to allow it.
        InputError: a key that is no setting, which the server has dropped.
    """
    if not isinstance(context, Settings) or not is_on_server():
        return
    # Keys of the config, which a caller without a context may have sent, are for others than us.
    dropped = set(unknown_keys.get()) - ensure_config().get("configurable", {}).keys()
    if dropped:
        # Says what is wrong, and what was probably meant.
        type(context).model_validate(dict.fromkeys(dropped))
    # What only an operator may choose. A form sends fields that are empty: these choose nothing.
    chosen = ["prompts"] if context.prompts and context.prompts != PAPERS else []
    if isinstance(context, RefereeSettings) and isinstance(context.roles, str) and "." in context.roles:
        chosen.append("roles")
    of_models = [name for model in context.models.values() for name in model.model_dump(exclude_none=True)]
    chosen += [name for name in of_models if name not in PARAMETERS]
    allowed = _allowed().keys()
    refused = next((name for name in chosen if not allowed & {name, "*"}), None)
    if refused is not None:
        remedy = f"its operator can bind it (`build`), or allow it to all callers: {VARIABLE}={refused}"
        raise UsageError(f"callers of this server may not choose {refused!r}; {remedy}")


def _allowed() -> dict[str, str]:
    """Return what the operator allows by name, with the number of that which has one."""
    entries = (entry.partition("=") for entry in os.environ.get(VARIABLE, "").split(","))
    return {name.strip(): number.strip() for name, _, number in entries}


def is_on_server() -> bool:
    """Tell whether the node that asks runs in a LangGraph server (``langgraph dev``, a deployment)."""
    # LangGraph tells its nodes so; where it does not, as in threads without its context, the server's package does.
    if "langgraph_api" in sys.modules:
        return True
    try:
        runtime: Runtime[Any] | None = get_runtime()  # None while an update of the state asks a router
        return runtime is not None and runtime.server_info is not None
    except RuntimeError:  # called outside of a graph
        return False
