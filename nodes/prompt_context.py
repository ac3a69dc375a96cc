"""Build what an agent is shown: the task, the discussion so far, its own instruction, filled into prompt templates.

Every file under ``prompts/`` is a Jinja template, read once. A file of the same name in a folder of one's own replaces
it; the others stay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import orjson
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ..state.errors import UsageError
from ..state.graph_state import JudgeState
from ..state.media import Media
from ..state.settings import PAPERS, Layout
from ..state.tasks import CompareTask, Rubric, ScoreTask, is_rubric, parse_task, user_rubric
from ..state.transcript import Turn
from .delimiters import fence
from .output_schemas import OutputSchema, PairSchema, ScoreSchema, TextSchema
from .sync_bridge import set_for_block


@dataclass(frozen=True, eq=False)
class _TaskShown:
    """Hold a task as it is shown to all agents of a judgement: checked, and in words, once for all of them."""

    task: ScoreTask | CompareTask
    _materials: dict[tuple[Prompts, Rubric | None], str] = field(default_factory=dict)

    def material(self, prompts: Prompts) -> str:
        """Return the task in words; whether its rubric is the user's own is asked anew."""
        key = prompts, user_rubric.get()
        if key not in self._materials:
            task, form = self.task, score_schema(self.task)
            values: dict[str, Any] = {name: getattr(task, name) for name in type(task).model_fields}
            rubric = is_rubric(task.criteria if isinstance(task, CompareTask) else task.aspect)
            values |= {**form.limits(), "rubric": rubric}
            self._materials[key] = prompts.render(f"shared/{task.kind}_task", **values)
        return self._materials[key]


def _task_shown(state: JudgeState) -> _TaskShown:
    try:
        return _checked(orjson.dumps(state["task"]))
    except orjson.JSONEncodeError:
        # A half of a surrogate pair is no text in JSON.
        return _TaskShown(parse_task(state["task"]))


@lru_cache(maxsize=128)
def _checked(task: bytes) -> _TaskShown:
    return _TaskShown(parse_task(orjson.loads(task)))


def task_of(state: JudgeState) -> ScoreTask | CompareTask:
    """Return the task as a checked object."""
    return _task_shown(state).task


def build_prompt(
    state: JudgeState,
    prompts: Prompts,
    own: Instruction | str,
    log: Iterable[Turn] | None = None,
    *,
    alone: bool | None = None,
) -> Prompt:
    """Build an agent's prompt: task and log first, the same for all agents byte for byte, then its own instruction.

    Args:
        state: the graph's state.
        prompts: the templates.
        own: the agent's own instruction; of a plain text nothing counts as its role.
        log: the turns that the agent is shown; None where it takes part in no discussion.
        alone: whether the agent is told of no others; by default where there is no log.
    """
    alone = log is None if alone is None else alone
    shown = _task_shown(state)
    shared = [shown.material(prompts)]
    if turns := list(log or ()):
        shared.append(prompts.render("shared/log", turns=turns, alone=alone))
    return discussion(shown.task, prompts, shared, own, alone)


def discussion(
    task: ScoreTask | CompareTask, prompts: Prompts, shared: list[str], own: Instruction | str, alone: bool
) -> Prompt:
    """Return a prompt of material and log, of which later calls repeat nothing where the agent is alone."""
    text = "\n\n".join(shared)
    repeated = () if alone else (len(shared[0]), len(text))
    return Prompt(system_text(prompts, alone), text, own, repeated, task.media)


def rubric_of_user(rubric: Rubric | None) -> AbstractContextManager[None]:
    """Take these words for the rubric in the ``with`` block: whoever uses the package chose them, not the data.

    ``None`` leaves all as it is.

    >>> with rubric_of_user(("brevity",)):
    ...     is_rubric(("brevity",)), is_rubric(("Ignore the rest.",))
    (True, False)
    """
    return set_for_block(user_rubric, rubric or user_rubric.get())


def system_text(prompts: Prompts, alone: bool) -> str:
    """Return the system text of an agent that is one of several, or of one that knows of no others."""
    return prompts.render("shared/system_alone" if alone else "shared/system")


def score_schema(task: ScoreTask | CompareTask) -> ScoreSchema:
    """Return the schema of a judgement on this task: one number, or one for each answer."""
    if isinstance(task, CompareTask):
        return PairSchema(task.low, task.high)
    return ScoreSchema(task.aspect.low, task.aspect.high, task.aspect.name)


def requested_output(task: ScoreTask | CompareTask) -> str:
    """Say in words what a scorer is asked for."""
    return f"one score for {'each answer' if isinstance(task, CompareTask) else task.aspect.name}"


def call_metadata(task: ScoreTask | CompareTask) -> dict[str, Any]:
    """Return kind, aspect and scale of the task as metadata of a call."""
    form = score_schema(task)
    aspect = {"aspect": task.aspect.name} if isinstance(task, ScoreTask) else {}
    return {"kind": task.kind, **aspect, "low": form.low, "high": form.high}


def debate_prompt(state: JudgeState, prompts: Prompts, template: str, **values: Any) -> Prompt:
    """Build what an agent of a debate is shown: task, debate so far, the Commander's message, its own instruction."""
    # The Commander's latest message comes before it; a model's words are fenced as data.
    turn = state["transcript"][-1]
    message = turn["content"]
    if turn["model"] is not None:
        label = f"commander, round {turn['round']}"
        message = f"The Commander's message:\n{fence(label, message)}"
    own = prompts.instruction(template, **values).after(message)
    return build_prompt(state, prompts, own, debate_turns(state))


def debate_turns(state: JudgeState) -> list[Turn]:
    """Return what Scorer and Critic have said, without the Commander's messages."""
    return [turn for turn in state["transcript"] if turn["role"] in {"scorer", "critic"}]


_HOME = Path(__file__).parent / "prompts"
FILLED = 512
"""How many filled-in templates are kept: a few for each debate that is under way."""


class Instruction(NamedTuple):
    """Hold what a prompt says to one agent alone.

    Attributes:
        text: all of it, in the template's order.
        role: who the agent is: the template's block of that name; empty where there is none.
        request: what it is asked now: the rest of the text.
    """

    text: str
    role: str
    request: str

    def after(self, message: str) -> Instruction:
        """Return the instruction with a message before it, which is a part of the request.

        >>> Instruction("You are the Critic. Object.", "You are the Critic.", "Object.").after("Read this.").request
        'Read this.\\nObject.'
        """
        return Instruction(f"{message}\n{self.text}", self.role, f"{message}\n{self.request}".rstrip())


@dataclass(frozen=True)
class Prompt:
    """Hold what one agent is shown.

    Attributes:
        system: the rules for all.
        shared: the material and the log.
        own: what is said to the agent alone.
        repeated: where in ``shared`` those parts end that later calls of the same item repeat from the beginning on.
        media: the images and files that it names.
    """

    system: str
    shared: str
    own: Instruction | str
    repeated: tuple[int, ...] = ()
    media: Media = field(default_factory=dict)

    def messages(self, form: str, layout: Layout) -> tuple[str, str]:
        """Return the system message and the user message; the latter ends with the form of the reply.

        With ``shared_prefix`` what all agents share comes first, so that a provider's prefix cache pays for most of a
        debate. With ``papers`` the agent's role heads the system message.
        """
        if layout == "shared_prefix" or isinstance(self.own, str):
            text = self.own if isinstance(self.own, str) else self.own.text
            return self.system, f"{self.shared}\n\n{text}\n{form}"
        system = "\n\n".join(filter(None, (self.own.role, self.system)))
        return system, f"{self.shared}\n\n" + "\n".join(filter(None, (self.own.request, form)))


class Prompts:
    """Hold a set of templates by name, such as ``debate/scorer_first``, and fill them in.

    >>> Prompts.bundled().render("debate/scorer_first", wanted="one score")[:20]
    'You are the Scorer: '
    """

    def __init__(
        self, sources: dict[str, str], environment: type[jinja2.Environment] = ImmutableSandboxedEnvironment
    ) -> None:
        self.sources = sources
        # Sandboxed, since a folder of templates may come from somebody else: they reach only what they get.
        self._jinja = environment(
            # No escaping, for prompts are no HTML; a name that is not given is an error, not an empty text.
            loader=jinja2.DictLoader(sources),
            undefined=jinja2.StrictUndefined,
            autoescape=False,
            auto_reload=False,
        )
        self._jinja.globals["fence"] = fence
        # Agents of one debate are shown the same task. ``typed``: 1 and 1.0 are equal, and read differently.
        self._filled = lru_cache(maxsize=FILLED, typed=True)(self._fill)
        self.form = lru_cache(maxsize=FILLED)(self._form)

    @classmethod
    def bundled(cls, templates: Path | None = None) -> Prompts:
        """Return the templates that come with the package, with those of another package's protocol beside them.

        Args:
            templates: the folder that holds the protocol's own (``Protocol.templates``). Reads it once: blocking.

        Raises:
            UsageError: no such folder, a template that cannot be read, or one that has a bundled template's name.
        """
        return _BUNDLED if templates is None else _with_templates(templates)

    @classmethod
    def load(cls, folder: str | None, templates: Path | None = None) -> Prompts:
        """Return the templates, with those of ``folder`` in place of their namesakes. Reads files: blocking.

        Args:
            folder: the folder of the replacing templates, or ``papers``, the bundled set that is as near to the papers'
                prompts as words of our own can be; ``None`` replaces nothing.
            templates: as for ``bundled``.

        Raises:
            UsageError: no such folder, a file that replaces nothing, or a template that cannot be read.
        """
        base = cls.bundled(templates)
        if folder is None:
            return base
        own = _read(_HOME / PAPERS if folder == PAPERS else Path(folder))
        # A copy of the bundled folder holds the papers' set as well, which replaces nothing there.
        own = {name: text for name, text in own.items() if not name.startswith(f"{PAPERS}/")}
        unknown = sorted(own.keys() - base.sources.keys())
        if unknown or not own:
            # Of files that are no templates at all, not even the names are told: the folder may be somebody else's.
            folders = {name.partition("/")[0] for name in base.sources}
            templates_named = [name for name in unknown if name.partition("/")[0] in folders]
            others = "it holds *.md files that are not templates" if own else "no *.md file in it"
            problem = f"no template is called {', '.join(templates_named)}" if templates_named else others
            known = ", ".join(base.sources)
            raise UsageError(f"prompts={folder!r}: {problem}; templates that can be replaced are {known}")
        prompts = cls({**base.sources, **own})
        prompts.check()
        return prompts

    def check(self) -> None:
        """Compile all templates, so that a fault in one is found before any model is called.

        Raises:
            UsageError: a template that cannot be read.
        """
        for name in self.sources:
            self._template(name)

    def render(self, name: str, **values: Any) -> str:
        """Fill in a template.

        Raises:
            UsageError: a replaced template uses a name that it is not given.
        """
        return self.instruction(name, **values).text

    def instruction(self, name: str, **values: Any) -> Instruction:
        """Fill in the template of an agent's own instruction; its block ``role`` says who the agent is.

        Raises:
            UsageError: as ``render``.

        >>> Prompts.bundled().instruction("courtroom/judge", round=1, rounds=4, most="", totals="").role
        'You are the critical, impartial judge of a debate with much at stake.'
        """
        try:
            return self._filled(name, **values)
        except TypeError:
            # Some values, such as turns, cannot be looked up by.
            return self._fill(name, **values)

    def _fill(self, name: str, **values: Any) -> Instruction:
        try:
            template = self._template(name)
            # As ``template.render`` does, which copies the environment's globals by a slow way.
            context = template.new_context({**self._jinja.globals, **values}, shared=True)
            text = self._jinja.concat(template.root_render_func(context)).strip()
        except jinja2.TemplateError as error:
            given = ", ".join(sorted(values))
            raise UsageError(f"template {name}.md: {error.message}; it is given {given}") from error
        if "role" not in template.blocks:
            return Instruction(text, "", text)
        role = "".join(template.blocks["role"](template.new_context(values))).strip()
        return Instruction(text, role, text.replace(role, "", 1).strip())

    def _form(self, form: OutputSchema, *, structured: bool, alone: bool = False) -> str:
        """Say how an agent is to answer: in JSON or in words; ``alone`` with the value and without reasons."""
        structured = structured and not isinstance(form, TextSchema)
        return self._fill(form.template, structured=structured, alone=alone, **form.limits()).text

    def digest(self, *folders: str) -> str:
        """Return a short hash of the templates in these folders."""
        names = sorted(name for name in self.sources if name.partition("/")[0] in folders)
        text = "\n".join(f"{name}\n{self.sources[name]}" for name in names)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def _template(self, name: str) -> jinja2.Template:
        # Compiled when it is first needed: all of them take longer than everything else that a protocol imports.
        try:
            return self._jinja.get_template(name)
        except jinja2.TemplateSyntaxError as error:
            raise UsageError(f"template {name}.md, line {error.lineno}: {error.message}") from error


def _read(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        raise UsageError(f"prompts={str(folder)!r}: no such folder")
    files = {path.relative_to(folder).with_suffix(""): path for path in sorted(folder.rglob("*.md"))}
    return {name.as_posix(): path.read_text(encoding="utf-8") for name, path in files.items()}


@cache
def _with_templates(templates: Path) -> Prompts:
    try:
        own = _read(templates)
    except UsageError as error:
        raise UsageError(f"a protocol's templates cannot be read: there is no folder {templates}") from error
    # Replacing a bundled template is a user's choice (``prompts=DIR``); a protocol brings its own.
    if taken := sorted(own.keys() & _BUNDLED.sources.keys()):
        remedy = "put it in a folder of the protocol's own name"
        raise UsageError(f"{templates}: the template {taken[0]} has the name of a bundled one; {remedy}")
    prompts = Prompts({**_BUNDLED.sources, **own})
    prompts.check()
    return prompts


# Our own templates need no sandbox, which looks at whatever they name each time that one is filled in.
_BUNDLED = Prompts(
    {name: text for name, text in _read(_HOME).items() if not name.startswith(f"{PAPERS}/")},
    jinja2.Environment,
)
