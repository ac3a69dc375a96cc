"""The jurors: each reads the whole memory and votes, from a background of its own (SAMRE, appendix C.3)."""

from __future__ import annotations

from typing import Any

from ..state.errors import ReplyError
from ..state.graph_state import JudgeState
from ..state.settings import SamreSettings
from .agent_runtime import Answer, Hearing, Question
from .court_summarizer import memory
from .courtroom import HIGHEST, LOWEST, court_details, court_prompt
from .output_schemas import Form, PairForm, VoteForm


async def jury(state: JudgeState, hearing: Hearing[SamreSettings]) -> dict[str, Any]:
    """Ask all jurors at once for their votes, or their scores. Shown: the case and the whole memory.

    A vote that cannot be read is void: it is counted and told, and ends nothing.
    """
    questions = [_question(state, hearing, number) for number in range(1, hearing.settings.jurors + 1)]
    answers = await hearing.poll(questions)
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


def _question(state: JudgeState, hearing: Hearing[SamreSettings], number: int) -> Question:
    settings = hearing.settings
    background = settings.backgrounds[(number - 1) % len(settings.backgrounds)]
    given = {"number": number, "jurors": settings.jurors, "background": background}
    own = hearing.prompts.render(f"courtroom/juror_{settings.ballot}", **given)
    form: Form = PairForm(LOWEST, HIGHEST) if settings.ballot == "score" else VoteForm()
    return Question(
        agent=f"juror_{number}",
        role="juror",
        round=state["round"],
        prompt=court_prompt(state, hearing.prompts, own, memory(state)),
        form=form,
        details=court_details(low=LOWEST, high=HIGHEST, background=background),
    )
