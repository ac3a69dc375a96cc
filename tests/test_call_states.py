"""Test budgets, the rate limiter and the draining of calls in any order of events.

Each is a state machine: hypothesis chooses the events, and shortens a failing sequence.
"""

import asyncio
import math
import tempfile
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from jurygraph.eval.journal import run_limits
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.records import Amounts, Entry, Grant, GrantRequest, Spent
from jurygraph.eval.results.config import RunConfig
from jurygraph.eval.run.calls.budget import BudgetTracker, SharedBudget
from jurygraph.eval.run.calls.call_pipeline import LivePipeline, RunContext
from jurygraph.eval.run.calls.shutdown import StopSignal
from jurygraph.nodes.models.call import Call, Reply
from jurygraph.nodes.models.loaded_model import LoadedModel, Serving
from jurygraph.nodes.models.rate_limiter import RateLimiter, RateLimits
from jurygraph.nodes.models.retry import Waits
from jurygraph.state.errors import ModelCallError, StoppedError
from jurygraph.state.transcript import NO_USAGE, Usage
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage

from .journal_locations import store_at

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

    def inside(self, action: Callable[[], None]) -> None:
        """Do something that may begin a task, and let everything happen that follows."""

        async def do() -> None:
            action()

        self.runner.run(do())
        self.settle()

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


class Process:
    """One process of a run: its budget asks a real journal for its share.

    The journal's thread is left out, so that a machine decides what happens when.
    """

    shared = True

    def __init__(self, where: str, part: int) -> None:
        self.store = store_at(where, part=str(part), lease=600)
        self.stop = StopSignal()
        config = RunConfig(max_calls=MOST_CALLS)
        self.budget = SharedBudget(config, cast("Journal", self), self.stop)
        self.asking: list[asyncio.Task[Amounts]] = []
        self.in_flight: list[Amounts] = []
        self.spent = 0
        self.refused = 0

    async def grant(self, request: GrantRequest) -> Grant:
        await asyncio.sleep(0)
        granted = run_limits.grant(self.store, request)
        await asyncio.sleep(0)
        return granted

    def holds_grant(self) -> bool:
        return self.store.granted_until > 0

    def end_call(self, *, sent: bool) -> None:
        reserved = self.in_flight.pop()
        self.budget.release(reserved)
        if sent:
            number = (self.store.opening << 32) + self.spent
            self.store.write([(number, bytes(16), "m", b"{}", 1, 10, 0, 5, 0, 0.0, 1.0)])
            self.budget.charge(CALL, USAGE, reserved)
            self.spent += 1


class Shared(OnALoop):
    """Calls of several processes that have one budget between them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.processes = [
            Process(f"sqlite:///{self.folder.name}/shared.sqlite", part) for part in range(3)
        ]

    def look(self) -> None:
        self.settle()
        for process in self.processes:
            for task in [task for task in process.asking if task.done()]:
                process.asking.remove(task)
                if isinstance(task.exception(), StoppedError):
                    process.refused += 1
                else:
                    process.in_flight.append(task.result())

    @property
    def spent(self) -> int:
        return sum(process.spent for process in self.processes)

    @property
    def begun(self) -> int:
        return self.spent + sum(len(process.in_flight) for process in self.processes)

    @rule(number=st.integers(0, 2))
    def ask(self, number: int) -> None:
        process = self.processes[number]
        process.asking.append(self.begin(process.budget.reserve(CALL)))
        self.look()

    @rule(data=st.data(), sent=st.booleans())
    @precondition(lambda self: self.begun > self.spent)
    def end_call(self, data: st.DataObject, sent: bool) -> None:
        process = data.draw(
            st.sampled_from([process for process in self.processes if process.in_flight])
        )
        process.end_call(sent=sent)
        self.look()

    @rule(number=st.integers(0, 2))
    def somebody_else_waits(self, number: int) -> None:
        self.inside(self.processes[number].budget.give_back)
        self.look()

    @rule(number=st.integers(0, 2), steps=st.integers(1, 4))
    def ask_while_others_are_given_what_is_left(self, number: int, steps: int) -> None:
        process = self.processes[number]

        async def give_back_and_ask() -> None:
            process.budget.give_back()
            for _ in range(steps):
                await asyncio.sleep(0)
            process.asking.append(asyncio.ensure_future(process.budget.reserve(CALL)))

        self.runner.run(give_back_and_ask())
        self.look()

    @rule(number=st.integers(0, 2))
    def outsleep_the_lease(self, number: int) -> None:
        self.processes[number].store.granted_until = 0
        self.look()

    @rule()
    def a_second_passes(self) -> None:
        """Let every process renew its lease, return what it does not use, and ask again."""
        for _ in self.processes:
            for process in self.processes:
                self.inside(process.budget.give_back)
                self.inside(process.budget._may_ask)
                self.look()
        waiting = any(process.asking for process in self.processes)
        assert not waiting or self.begun == MOST_CALLS

    @invariant()
    def no_call_is_one_too_many(self) -> None:
        assert self.begun <= MOST_CALLS

    @invariant()
    def a_call_is_refused_only_if_the_budget_of_all_is_spent(self) -> None:
        for process in self.processes:
            assert bool(process.refused) <= (process.stop.reason == "budget")
            if process.stop.reason is not None:
                assert self.spent == MOST_CALLS

    def teardown(self) -> None:
        super().teardown()
        for process in self.processes:
            process.store.close()
        self.folder.cleanup()


class MemoryJournal:
    """A journal that remembers what it is given, without a thread of its own."""

    shared = False
    spent = Spent(NO_USAGE)

    def __init__(self) -> None:
        self.kept: dict[bytes, Entry] = {}
        self.reserved: set[bytes] = set()

    def listen(self, listener: Callable[..., None]) -> None:
        """Nobody else has this journal open."""

    async def reserve(self, key: bytes) -> bytes | None:
        assert key not in self.reserved
        if key in self.kept:
            return self.kept[key].reply
        self.reserved.add(key)
        return None

    async def release(self, key: bytes) -> None:
        self.reserved.remove(key)

    async def keep(self, key: bytes, entry: Entry) -> None:
        assert key not in self.kept
        self.kept[key] = entry
        self.reserved.discard(key)


class Draining(OnALoop):
    """Calls of a run that ends: some are sent, some wait, and some answers still arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.journal = MemoryJournal()
        self.context = RunContext(RunConfig(concurrency=MOST_AT_ONCE, attempts=1))
        self.pipeline = LivePipeline(cast("Journal", self.journal), self.context)
        self.model = LoadedModel(FakeListChatModel(responses=["4"]), {"name": "m"}, Serving())
        self.sent: dict[int, asyncio.Future[Reply]] = {}
        self.answered = 0
        self.failed = 0
        self.callers: list[tuple[int, asyncio.Task[Reply]]] = []
        self.draining: asyncio.Task[None] | None = None

    @rule(number=st.integers(0, 7))
    def call(self, number: int) -> None:
        call = Call(self.model, [HumanMessage(str(number))], None, {})

        async def send(_call: Call) -> Reply:
            # A call in flight or in the journal is not sent again.
            assert number not in self.sent
            self.sent[number] = asyncio.get_running_loop().create_future()
            try:
                return await self.sent[number]
            finally:
                del self.sent[number]

        self.callers.append((number, self.begin(self.pipeline(call, send))))

    @rule(data=st.data(), fails=st.booleans())
    @precondition(lambda self: self.sent)
    def answer(self, data: st.DataObject, fails: bool) -> None:
        number = data.draw(st.sampled_from(sorted(self.sent)))
        if fails:
            self.sent[number].set_exception(ModelCallError("no reply"))
            self.failed += 1
        else:
            self.sent[number].set_result(Reply("4", None, False, False, USAGE))
            self.answered += 1
        self.settle()

    @rule(data=st.data())
    @precondition(lambda self: self.callers)
    def cancel_a_caller(self, data: st.DataObject) -> None:
        sent = len(self.sent)
        data.draw(st.sampled_from(self.callers))[1].cancel()
        self.settle()
        # The call continues: it is being paid for.
        assert len(self.sent) == sent

    @rule()
    @precondition(lambda self: self.draining is None)
    def stop(self) -> None:
        sent = len(self.sent)
        self.context.stop.ask("interrupted", "stopped by a signal")
        self.draining = self.begin(self.pipeline.drain(math.inf))
        assert len(self.sent) == sent

    @rule()
    @precondition(lambda self: self.draining is not None and self.sent)
    def stop_at_once(self) -> None:
        self.context.stop.at_once()
        self.settle()
        assert not self.sent

    @invariant()
    def every_answer_is_kept_and_every_request_given_up_is_counted(self) -> None:
        given_up = self.context.counts.given_up
        assert len(self.journal.kept) == self.answered + given_up
        assert len(self.sent) <= MOST_AT_ONCE
        if not self.context.stop.is_asked:
            assert not given_up

    @invariant()
    def draining_ends_with_the_last_sent_call_and_no_other_call_is_waited_for(self) -> None:
        if self.draining is None:
            return
        assert self.draining.done() is not bool(self.sent)
        for number, caller in self.callers:
            assert caller.done() or number in self.sent
            if caller.done() and not caller.cancelled():
                assert isinstance(caller.exception(), StoppedError | ModelCallError | type(None))
        if not self.sent:
            assert not self.journal.reserved


FEW = settings(max_examples=25, stateful_step_count=25)
TestBudget = Budget.TestCase
TestBudget.settings = FEW
TestLimiter = Limiter.TestCase
TestLimiter.settings = FEW
TestShared = Shared.TestCase
# Each has a database of its own.
TestShared.settings = settings(max_examples=8, stateful_step_count=25)
TestDraining = Draining.TestCase
TestDraining.settings = FEW
