"""Judges for the tests of a session: they share one journal and remember their results."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from ...nodes.common.sync_bridge import run_blocking
from ...nodes.models.send import answering_calls
from ...state.errors import UsageError
from ...state.redaction import spelled_out
from ...state.transcript import Turn
from ..journal.call_journal import Journal
from ..results.config import RunConfig
from ..run.calls.call_pipeline import LivePipeline, RunContext
from .judge import Feedback, Judge, create_judge
from .judge_pipeline import OwnPipeline, open_journal


class Judged(dict[str, Any]):
    """The feedback of a judge, with the ``transcript`` of its debate."""

    transcript: Sequence[Turn] = ()


class SessionJudge(Judge):
    """A ``Judge`` whose calls go through the journal of a session, which remembers its results."""

    def __init__(self, made: Judge, session: JudgeSession) -> None:
        # The judge already exists and was checked. Only the route of its calls differs.
        vars(self).update(vars(made))
        self._session = session

    def __call__(self, **given: Any) -> Judged:
        """Judge one output, or compare two; arguments and errors are those of ``Judge``."""
        with self._session.journaled():
            return self._session.note(super().__call__(**given), given)

    async def acall(self, **given: Any) -> Judged:
        """Judge from async code."""
        with self._session.journaled():
            return self._session.note(await super().acall(**given), given)

    def feedback(self, outcome: Any, runs: Sequence[Any] | None = None) -> Feedback:
        """Make the feedback for the graph's output, and store the debate with it."""
        judged = Judged(super().feedback(outcome, runs))
        judged.transcript = outcome.get("transcript", ())
        return judged


class JudgeSession:
    """Creates judges that share a journal, so that no session repeats a call of an earlier one.

    Args:
        journal: an SQLite file or ``postgresql://...``; several processes may share it.
        folder: the folder for the debates of failed tests.
        model: the default model.
        max_calls: the session's budget; a call beyond it raises ``StoppedError``.

    Attributes:
        counts: the calls made, and the calls answered from the journal.
    """

    def __init__(
        self,
        journal: str | Path,
        folder: Path,
        model: str | None = None,
        max_calls: int | None = None,
    ) -> None:
        context = RunContext(RunConfig(max_calls=max_calls))
        self.counts = context.counts
        self._stop = context.stop
        self._folder = folder
        self._model = model
        self._judged: defaultdict[str, list[tuple[Judged, dict[str, Any]]]] = defaultdict(list)

        async def make(context: RunContext) -> tuple[Journal, LivePipeline]:
            opened = await open_journal(journal, context)
            return opened, LivePipeline(opened, context)

        self._calls = OwnPipeline(context, make)
        run_blocking(self._calls.open())

    def __call__(self, protocol: Any, **options: Any) -> SessionJudge:
        """Make a judge; arguments and errors are those of ``create_judge``."""
        if own := options.keys() & {"max_cost", "max_calls", "cache"}:
            raise UsageError(
                f"{sorted(own)[0]}: a judge of a test session uses the session's journal and "
                "budget; leave it out"
            )
        if options.get("output_schema") is not None:
            raise UsageError(
                "output_schema: a judge of a test session returns its whole feedback, from which "
                "it reports failed tests; leave it out"
            )
        if self._model and isinstance(protocol, str) and not options.keys() & {"model", "models"}:
            options["model"] = self._model
        return SessionJudge(create_judge(protocol, **options), self)

    def journaled(self) -> AbstractContextManager[None]:
        """Send all model calls inside this context, including an agent's, through the journal."""
        return answering_calls(self._calls)

    def note(self, feedback: Feedback, given: dict[str, Any]) -> Judged:
        """Remember a judgement of this test; in a LangSmith test it is also logged there."""
        assert isinstance(feedback, Judged)
        # pytest stores "tests/test_a.py::test_b (call)" there.
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
        self._judged[test].append((feedback, given))
        if "score" in feedback:
            from langsmith.testing import log_feedback

            with suppress(ValueError):  # no test of LangSmith's
                log_feedback(
                    key=feedback["key"], score=feedback["score"], comment=feedback["comment"]
                )
        return feedback

    @property
    def spent(self) -> str:
        """A sentence about the spent budget; empty if there is budget left."""
        return self._stop.explanation if self._stop.reason == "budget" else ""

    def report(self, test: str) -> str:
        """Write the debates of a test to files, and return scores, explanations and file paths."""
        lines = []
        for number, (judged, given) in enumerate(self._judged[test], start=1):
            self._folder.mkdir(parents=True, exist_ok=True)
            name = re.sub(r"[^\w.-]+", "_", test)[-120:]
            path = self._folder / f"{name}-{number}.txt"
            texts = (
                f"{argument}:\n{text}\n" for argument, text in given.items() if text is not None
            )
            turns = (
                "round {round}, {agent}:\n{content}\n".format_map(turn)
                for turn in judged.transcript
            )
            debate = "\n".join((*texts, *turns, f"{judged['key']}: {judged.get('score')}\n"))
            path.write_text(spelled_out(debate), encoding="utf-8", errors="replace")
            lines.append(f"{judged['key']}: {judged.get('score', judged.get('scores'))}")
            # With a bar in front, a CI system that reads the log does not take a line of a model's
            # reply for a command.
            lines += [f"  | {line}" for line in spelled_out(judged["comment"]).splitlines()]
            lines.append(f"  the debate: {path}")
        return "\n".join(lines)

    def close(self) -> None:
        """Finish pending writes, and close the journal."""
        # The tests have ended, so nothing waits for a call in progress.
        run_blocking(self._calls.close())
