"""The limits for callers of a LangGraph server: what a run may choose and how much it may use.

Callers choose settings that shape a judgement (``state/settings/caller_rules.py``), but no files,
modules, addresses or keys. A run may not exceed the calls, characters and seconds of ``CEILINGS``.
The limits do not apply to settings that the server's operator bound with ``build``. The operator
can allow more to all callers, by name: ``JURYGRAPH_SERVER_ALLOW=prompts,base_url,calls=500``, or
``*`` for everything.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.runnables.config import merge_configs
from langgraph.runtime import Runtime, get_runtime

from ...state.checked import Checked
from ...state.errors import RunTimeoutError, UsageError
from ...state.media import Media, media_of_caller_fault
from ...state.settings import Settings
from ...state.settings.base_settings import explicitly_set, unknown_keys
from ...state.settings.caller_rules import closed_choices

VARIABLE = "JURYGRAPH_SERVER_ALLOW"

CEILINGS = {"calls": 100, "characters": 200_000, "seconds": 600}
"""The limits of a run.

``calls``: model calls of all judges inside it. ``characters``: the length of its task and of its
context (each). ``seconds``: its duration. The limits of single settings are in ``state/settings``.
"""


def check_size(what: Literal["calls", "characters"], asked: int | Checked, bound: int = 0) -> None:
    """Check the number of calls of a server's run, or the length of its task or context.

    ``bound`` is the operator's own number, which is allowed.

    Raises:
        UsageError: more than callers may request; the message contains the limit and how to raise
            it.
    """
    ceiling = _ceiling(what) if is_on_server() else None
    if ceiling is None:
        return
    if isinstance(asked, Checked):
        asked = len(asked.model_dump_json())
    if asked > max(ceiling, bound):
        raise UsageError(
            f"this asks for {asked:,} {what}, but callers of this server may have {ceiling:,}; "
            "ask for less, or have its operator allow more to all callers: "
            f"{VARIABLE}={what}={asked}"
        )


def _ceiling(what: str) -> int | None:
    """Return the limit that the operator set, or the default; None if everything is allowed."""
    allowed = _allowed()
    if "*" in allowed:
        return None
    ceiling = allowed.get(what) or str(CEILINGS[what])
    if not ceiling.isdecimal():
        raise UsageError(f"{VARIABLE} allows {what}={ceiling}, which is not a number")
    return int(ceiling)


def check_caller(context: object) -> None:
    """Check the settings in a run's context, if the run is on a server.

    ``graphs/engine/wrapper.py`` checks the settings of protocols inside a wrapper, because it knows
    the protocols.

    Raises:
        UsageError: a setting that only the operator may choose; the message explains how to allow
            it.
    """
    if not isinstance(context, Settings) or not is_on_server():
        return
    # The wrappers check the protocols that are named, and the choices for these.
    named = getattr(context, "places", {})
    chosen = {
        name: value
        for name, value in explicitly_set(context).items()
        if name not in named and name not in named.values()
    }
    for name in closed_choices(chosen, type(context)):
        if not is_allowed(name):
            raise refusal(name, " as a path or an address" if name == "name" else "")


def refusal(name: str, why: str = "") -> UsageError:
    """Return the error for a setting or a part of a task that only the operator may choose."""
    remedy = f"its operator can bind it (`build`), or allow it to all callers: {VARIABLE}={name}"
    return UsageError(f"callers of this server may not choose {name!r}{why}; {remedy}")


def check_media(media: Media) -> None:
    """Check that a caller's images and files come with their content, if the run is on a server.

    Raises:
        UsageError: an image or a file with an address, or one that may be read as a file's path.
    """
    if not media or not is_on_server() or is_allowed("addresses"):
        return
    for name, part in media.items():
        if fault := media_of_caller_fault(part):
            raise UsageError(
                f"task.media: {name} {fault}, but callers of this server must send the content "
                f"in base64, unless its operator allows addresses: {VARIABLE}=addresses"
            )


def check_known_keys(
    schema: type[Settings], config: RunnableConfig | None, assistant: Mapping[str, Any]
) -> None:
    """Check that all keys of a run's context are settings, because a server drops unknown ones.

    Graphs inside the run do not repeat the check.

    Args:
        schema: the settings class.
        config: the run's config. Keys in its ``configurable`` may be meant for other graphs of the
            caller.
        assistant: the context of the run's assistant, which the server copies into the config. It
            is meant for this graph only.

    Raises:
        InputError: a key that is not a setting; the message names the setting with the closest
            name.
    """
    others = {*(config or {}).get("configurable", {})} - {*assistant}
    if unknown := [name for name in unknown_keys.get() if name not in others]:
        # The settings class raises the error, with the closest name.
        schema.model_validate(dict.fromkeys(unknown))
    unknown_keys.set(())


async def context_of_assistant(config: RunnableConfig | None) -> Mapping[str, Any]:
    """Return the context of the run's assistant; empty if none of its keys can be unknown.

    The server merges it into the run's context and ``configurable``, so only the assistant itself
    shows its own keys.
    """
    configurable = (config or {}).get("configurable", {})
    suspected = [name for name in unknown_keys.get() if name in configurable]
    if not suspected or "langgraph_api" not in sys.modules or "assistant_id" not in configurable:
        return {}
    from langgraph_sdk import get_client

    # Without an address, the client asks the server of this process. Creating it reads files.
    client = await asyncio.to_thread(get_client)
    try:
        assistant = await client.assistants.get(str(configurable["assistant_id"]))
    finally:
        await client.aclose()
    context: Any = assistant.get("context")
    return context if isinstance(context, Mapping) else {}


def is_allowed(name: str) -> bool:
    """Return whether the operator opened this to all callers."""
    return not {name, "*"}.isdisjoint(_allowed())


def _allowed() -> dict[str, str]:
    """Return the operator's allowances by name, with the number if there is one."""
    entries = (entry.partition("=") for entry in os.environ.get(VARIABLE, "").split(","))
    return {name.strip(): number.strip() for name, _, number in entries}


def is_on_server(config: RunnableConfig | None = None) -> bool:
    """Return whether this runs in a LangGraph server (``langgraph dev``, a deployment).

    Args:
        config: the config of a graph that is about to run; inside a node, LangGraph provides it.
    """
    # LangGraph informs its nodes. Threads without its context only see the server's package.
    if "langgraph_api" in sys.modules:
        return True
    if config is not None and {"assistant_id", "graph_id"} & config.get("configurable", {}).keys():
        return True
    try:
        runtime: Runtime[Any] | None = get_runtime()  # None while ``update_state`` calls a router
        return runtime is not None and runtime.server_info is not None
    except RuntimeError:  # called outside of a graph
        return False


# The duration of a run. A pause for a human ends the run. The answer begins another one with its
# own limit.


@dataclass(frozen=True)
class _Clock:
    """The time limit of a run.

    Attributes:
        seconds: the duration that is allowed.
        until: the end of the time, by ``time.monotonic``.
    """

    seconds: int
    until: float


_CLOCK = "__pregel_jurygraph_clock"
"""The key of a run's config under which its clock is stored.

A server reads each part of a stream in a separate task, where a context variable would be lost.
LangGraph removes keys with this prefix from stored and streamed data.
"""


def with_run_clock(config: RunnableConfig | None) -> RunnableConfig | None:
    """Return the config of a server's run with a time limit.

    Nested graphs share the outer limit.
    """
    # A caller can only send JSON, which is never a clock.
    is_limited = isinstance(_clock_of(ensure_config(config)), _Clock)
    limit = None if is_limited or not is_on_server(config) else _ceiling("seconds")
    if limit is None:
        return config
    return merge_configs(
        config, {"configurable": {_CLOCK: _Clock(limit, time.monotonic() + limit)}}
    )


def _clock_of(config: RunnableConfig | None) -> Any:
    return (config or {}).get("configurable", {}).get(_CLOCK)


@asynccontextmanager
async def within_run_time(config: RunnableConfig | None) -> AsyncIterator[None]:
    """Stop the block when the time of the run with this config is over.

    Raises:
        RunTimeoutError: the time is over.
    """
    clock = _clock_of(config)
    if not isinstance(clock, _Clock):
        yield
        return
    left = clock.until - time.monotonic()
    if left <= 0:
        raise _time_is_over(clock)
    try:
        async with asyncio.timeout(left) as timeout:
            yield
    except TimeoutError as error:
        # Calls have time limits and errors of their own.
        if not timeout.expired():
            raise
        raise _time_is_over(clock) from error


def _time_is_over(clock: _Clock) -> RunTimeoutError:
    problem = f"the run was stopped after {clock.seconds:,} seconds, the most that runs of this server may take"
    remedy = "ask for less, or have its operator allow more to all callers"
    return RunTimeoutError(f"{problem}; {remedy}: {VARIABLE}=seconds={2 * clock.seconds}")
