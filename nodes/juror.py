"""The jurors: each reads the debate and votes, with its own background (SAMRE, appendix C.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..state.graph_state import AgentState
from ..state.settings import SamreSettings
from .court_summarizer import memory
from .runtime.agent_runtime import AgentRuntime
from .runtime.courtroom import HIGHEST, LOWEST, SIDES, ChoiceSchema, answers_of, ask_in_court
from .runtime.output_schemas import OutputSchema, PairSchema, VoteSchema


async def juror(state: AgentState, runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Ask one juror for its vote, or its scores.

    Shown: the case and the remembered debate (all turns, or the latest summary).
    """
    settings = runtime.settings
    answers = answers_of(state)
    number = int(state["agent"].rpartition("_")[2])
    written = state["details"].get("personas", ())
    background = backgrounds_of(settings, written)[state["agent"]]
    given = {"number": number, "jurors": settings.jurors}
    if settings.writes_backgrounds:
        # A model wrote the description. It may contain words of the question, so it is data.
        about = {"title": background, "description": written[number - 1]["description"]}
        own = runtime.prompts.instruction(f"jury/{settings.ballot}", **given, **about)
    else:
        folder = "court" if answers > len(SIDES) else "courtroom"
        template = f"{folder}/juror_{settings.ballot}"
        own = runtime.prompts.instruction(template, **given, background=background)
    form: OutputSchema = PairSchema(LOWEST, HIGHEST) if settings.ballot == "score" else VoteSchema()
    if answers > len(SIDES):
        form = ChoiceSchema(answers=answers)
    details = {"low": LOWEST, "high": HIGHEST, "background": background}
    return await ask_in_court(state, runtime, state["agent"], own, memory(state), form, **details)


def backgrounds_of(
    settings: SamreSettings, written: Sequence[Mapping[str, str]] = ()
) -> dict[str, str]:
    """Return each juror's background; more jurors than backgrounds repeat them from the first.

    Args:
        settings: the number of jurors, and their backgrounds.
        written: the personas that ``backgrounds=auto`` wrote; their names are the backgrounds.

    >>> list(backgrounds_of(SamreSettings(jurors=2)))
    ['juror_1', 'juror_2']
    """
    given = settings.backgrounds
    if settings.writes_backgrounds and written:
        given = tuple(persona["name"] for persona in written)
    return {f"juror_{number + 1}": given[number % len(given)] for number in range(settings.jurors)}
