"""Test the budget and the rate limiter in any order of events, as state machines."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from jurygraph.eval.journal.records import Amounts, Spent
from jurygraph.eval.results.config import RunConfig
from jurygraph.eval.run.calls.budget import BudgetTracker
from jurygraph.eval.run.calls.shutdown import StopSignal
from jurygraph.nodes.models.call import Call
from jurygraph.nodes.models.rate_limiter import RateLimiter, RateLimits
from jurygraph.nodes.models.retry import Waits
from jurygraph.state.errors import StoppedError
from jurygraph.state.transcript import NO_USAGE, Usage

CALL = cast("Call", SimpleNamespace(messages=[], model=SimpleNamespace(label="m")))
USAGE = Usage(calls=1, input_tokens=10, output_tokens=5)
MOST_CALLS = 5
MOST_AT_ONCE = 3


class OnALoop(RuleBasedStateMachine):
    """Runs the coroutines of a machine on an event loop of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.tasks: list[asyncio.Task[Any]] = []

    def begin(self, coroutine: Any) -> asyncio.Task[Any]:
        task = self.runner.get_loop().create_task(coroutine)
        self.tasks.append(task)
        self.settle()
        return task

    def settle(self) -> None:
        """Let everything happen that can happen without another event."""

        async def pause() -> None:
            for _ in range(20):
                await asyncio.sleep(0)

        self.runner.run(pause())

    def teardown(self) -> None:
        for task in self.tasks:
            task.cancel()
        self.settle()
        self.runner.close()


class Budget(OnALoop):
    """Calls that ask for room, and end in each way that a call can end."""

    def __init__(self) -> None:
        super().__init__()
        self.stop = StopSignal()
        self.budget = BudgetTracker(RunConfig(max_calls=MOST_CALLS), Spent(NO_USAGE), self.stop)
        self.spent = 0
        self.asking: list[asyncio.Task[Amounts]] = []
        self.in_flight: list[Amounts] = []
        self.refused = 0

    def look(self) -> None:
        self.settle()
        for task in [task for task in self.asking if task.done()]:
            self.asking.remove(task)
            if isinstance(task.exception(), StoppedError):
                self.refused += 1
            else:
                self.in_flight.append(task.result())

    @rule()
    def ask(self) -> None:
        self.asking.append(self.begin(self.budget.reserve(CALL)))
        self.look()

    @rule(end=st.sampled_from(["answered", "refused", "given up", "not sent"]))
    @precondition(lambda self: self.in_flight)
    def end_call(self, end: str) -> None:
        reserved = self.in_flight.pop()
        if end == "refused":
            self.budget.count_refused()
        elif end == "given up":
            self.budget.give_up(CALL)
        self.budget.release(reserved)
        if end == "answered":
            self.budget.charge(CALL, USAGE, reserved)
        self.spent += end != "not sent"
        self.look()

    @invariant()
    def no_call_is_one_too_many(self) -> None:
        assert self.spent + len(self.in_flight) <= MOST_CALLS

    @invariant()
    def a_call_waits_only_while_others_may_leave_room(self) -> None:
        if self.asking:
            assert self.in_flight
            assert self.spent + len(self.in_flight) == MOST_CALLS

    @invariant()
    def a_call_is_refused_only_if_the_budget_is_spent(self) -> None:
        assert bool(self.refused) is (self.stop.reason == "budget")
        if self.refused:
            assert self.spent == MOST_CALLS


class Limiter(OnALoop):
    """Calls that start, end, fail and are cancelled at any time."""

    def __init__(self) -> None:
        super().__init__()
        limits = RateLimits(concurrency=MOST_AT_ONCE)
        self.limiter = RateLimiter(limits, asyncio.Semaphore(10), "m", Waits(), None)
        self.waiting: list[int] = []
        self.running: dict[int, asyncio.Future[None]] = {}
        self.calls: list[asyncio.Task[None]] = []

    @rule()
    def start(self) -> None:
        number = len(self.calls)

        async def work() -> None:
            # Calls start in order of arrival.
            assert self.waiting[0] == number
            self.waiting.remove(number)
            self.running[number] = asyncio.get_running_loop().create_future()
            try:
                await self.running[number]
            finally:
                del self.running[number]

        self.waiting.append(number)
        self.calls.append(self.begin(self.limiter.run(work, 100)))

    @rule(data=st.data(), fails=st.booleans())
    @precondition(lambda self: self.running)
    def end_call(self, data: st.DataObject, fails: bool) -> None:
        number = data.draw(st.sampled_from(sorted(self.running)))
        if fails:
            self.running[number].set_exception(ValueError("no reply"))
        else:
            self.running[number].set_result(None)
        self.settle()
        assert isinstance(self.calls[number].exception(), ValueError) is fails

    @rule(data=st.data())
    @precondition(lambda self: self.running or self.waiting)
    def cancel(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted([*self.running, *self.waiting])))
        if number in self.waiting:
            self.waiting.remove(number)
        self.calls[number].cancel()
        self.settle()
        assert self.calls[number].cancelled()

    @rule(steps=st.integers(0, 4))
    @precondition(lambda self: self.running and self.waiting)
    def cancel_the_next_call_as_it_is_let_in(self, steps: int) -> None:
        number = self.waiting[0]

        async def end_and_cancel() -> None:
            self.running[min(self.running)].set_result(None)
            for _ in range(steps):
                await asyncio.sleep(0)
            self.calls[number].cancel()
            if number in self.waiting:
                self.waiting.remove(number)

        self.runner.run(end_and_cancel())
        self.settle()
        assert self.calls[number].cancelled()

    @invariant()
    def no_more_calls_run_than_allowed_and_none_waits_without_need(self) -> None:
        assert len(self.running) <= MOST_AT_ONCE
        assert len(self.running) == self.limiter.in_flight
        if self.waiting:
            assert len(self.running) == MOST_AT_ONCE


FEW = settings(max_examples=25, stateful_step_count=25)
TestBudget = Budget.TestCase
TestBudget.settings = FEW
TestLimiter = Limiter.TestCase
TestLimiter.settings = FEW
