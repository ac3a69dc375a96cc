"""Ask the jurors, each of whom reads the debate and votes, with a background of its own (SAMRE, appendix C.3)."""

from __future__ import annotations

from typing import Any

from ..state.errors import ReplyError
from ..state.graph_state import JudgeState
from ..state.settings import SamreSettings
from .agent_runtime import AgentRuntime, Answer, Question
from .court_summarizer import memory
from .courtroom import HIGHEST, LOWEST, court_details, court_prompt
from .output_schemas import OutputSchema, PairSchema, VoteSchema


async def jury(state: JudgeState, runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Ask all jurors at once for their votes, or their scores.

    Shown: the case and the debate as it is remembered (all turns, or the latest summary). A vote that cannot be read
    is void: it is counted in ``details``, named in a warning, and does not fail the item.
    """
    questions = [_question(state, runtime, number) for number in range(1, runtime.settings.jurors + 1)]
    answers = await runtime.ask_each(questions)
    void = [answer for answer in answers if isinstance(answer, ReplyError)]
    cast = [answer for answer in answers if isinstance(answer, Answer)]
    warnings = [warning for answer in cast for warning in answer.warnings]
    return {
        "transcript": [answer.turn for answer in answers if answer.turn is not None],
        "warnings": [*warnings, *(f"{error.agent}: void vote. {error.problem}" for error in void)],
        "details": {
            "void_votes": len(void),
            "jurors": {question.agent: question.details["background"] for question in questions},
        },
    }


def _question(state: JudgeState, runtime: AgentRuntime[SamreSettings], number: int) -> Question:
    settings = runtime.settings
    background = settings.backgrounds[(number - 1) % len(settings.backgrounds)]
    given = {"number": number, "jurors": settings.jurors, "background": background}
    own = runtime.prompts.instruction(f"courtroom/juror_{settings.ballot}", **given)
    form: OutputSchema = PairSchema(LOWEST, HIGHEST) if settings.ballot == "score" else VoteSchema()
    return Question(
        agent=f"juror_{number}",
        role="juror",
        round=state["round"],
        prompt=court_prompt(state, runtime.prompts, own, memory(state)),
        form=form,
        details=court_details(low=LOWEST, high=HIGHEST, background=background),
    )
