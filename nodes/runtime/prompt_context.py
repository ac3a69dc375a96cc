"""Builds prompts from templates: the task, the discussion so far, and the agent's instruction.

Every file under ``prompts/`` is a Jinja template, which is read once. A file of the same name in
the user's own folder replaces it. The others stay.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import orjson
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ...state.aspects import Aspect
from ...state.checked import did_you_mean
from ...state.errors import UsageError
from ...state.evidence import Evidence, cited_evidence, written
from ...state.graph_state import JudgeState
from ...state.media import Media
from ...state.panels import without_failed
from ...state.settings import PAPERS, Fences, Layout
from ...state.tasks import (
    TEXTS,
    CompareTask,
    Rubric,
    ScoreTask,
    is_rubric,
    parse_task,
    rubric_of,
    shown_fields,
    user_rubric,
)
from ...state.transcript import Turn
from ..common.delimiters import fence, without_fences
from ..common.sync_bridge import set_for_block
from .output_schemas import OutputSchema, PairSchema, ScoreSchema, TextSchema, written_choices
from .prompt_variables import (
    essential_to,
    foreign_placeholders,
    given_to,
    unknown_placeholders,
    used_placeholders,
)


@dataclass(frozen=True, eq=False)
class _TaskShown:
    """A checked task and its text, which all agents of a judgement share."""

    task: ScoreTask | CompareTask
    _materials: dict[tuple[Prompts, Rubric | None], str] = field(default_factory=dict)

    def material(self, prompts: Prompts) -> str:
        """Return the task in words.

        Whether the rubric is the user's own is part of the cache key.
        """
        key = prompts, user_rubric.get()
        if key not in self._materials:
            task = self.task
            form = score_schema(self.task)
            values: dict[str, Any] = {
                name: getattr(task, name) for name in shown_fields(type(task))
            }
            values |= {**form.limits(), "rubric": is_rubric(rubric_of(task))}
            shown = prompts.render(f"shared/{task.kind}_task", **values)
            if isinstance(task, ScoreTask):
                shown += rubric_points(task.aspect, prompts) + score_rules(task.aspect, prompts)
            self._materials[key] = with_all_texts(shown, task, f"shared/{task.kind}_task")
        return self._materials[key]


def _task_shown(state: JudgeState) -> _TaskShown:
    try:
        return _checked(orjson.dumps(state["task"]))
    except orjson.JSONEncodeError:
        # JSON cannot contain a lone surrogate.
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
    """Build an agent's prompt: the shared task and log first, then its own instruction.

    The shared part is identical for all agents, byte for byte.

    Args:
        state: the graph's state.
        prompts: the templates.
        own: the agent's own instruction; plain text has no role.
        log: the turns that the agent is shown, failed ones excepted; None if it takes part in no
            discussion.
        alone: whether the prompt mentions no other agents; by default, if there is no log.
    """
    alone = log is None if alone is None else alone
    shown = _task_shown(state)
    shared = [shown.material(prompts)]
    if turns := without_failed(log or ()):
        shared.append(prompts.render("shared/log", turns=turns, alone=alone))
    prompt = discussion(shown.task.media, prompts, shared, own, alone)
    if cited := cited_evidence(turns):
        # Behind the log and in fences of its own: inside a turn's fence, an agent could mistake
        # words of a tool for its own. The log's end stays the end of the repeated part.
        evidence = evidence_in_words(prompts, cited, own=False)
        prompt = replace(prompt, shared=f"{prompt.shared}\n\n{evidence}")
    return prompt


def evidence_in_words(prompts: Prompts, evidence: Sequence[Evidence], *, own: bool = True) -> str:
    """Return evidence as a part of a prompt; ``own`` if it is that of the asked agent."""
    shown = [{"id": piece["id"], "text": written(piece)} for piece in evidence]
    return prompts.render("tools/evidence", evidence=shown, own=own)


def discussion(
    media: Media,
    prompts: Prompts,
    shared: list[str],
    own: Instruction | str,
    alone: bool,
) -> Prompt:
    """Return a prompt of material and log; for a lone agent, later calls repeat no part of it."""
    text = "\n\n".join(shared)
    repeated = () if alone else (len(shared[0]), len(text))
    return Prompt(system_text(prompts, alone), text, own, repeated, media)


_LABELS = {"answer_1": "answer 1", "answer_2": "answer 2"}
"""The names of a task's texts in fences, if they differ from the field names."""


def with_all_texts(shown: str, task: ScoreTask | CompareTask, template: str) -> str:
    """Return the text that a template made from a task, if it contains all of the task's texts.

    Raises:
        UsageError: the template leaves out one of the task's texts.
    """
    for name in TEXTS:
        text = getattr(task, name, None)
        if text is not None and fence(_LABELS.get(name, name), text) not in shown:
            raise UsageError(
                f"template {template}.md does not show the task's {name}: "
                f'add {{{{ fence("{_LABELS.get(name, name)}", {name}) }}}} '
                f"to it, or leave the {name} out of the task"
            )
    return shown


def score_rules(aspect: Aspect, prompts: Prompts) -> str:
    """Return an aspect's examples and allowed scores as text, or an empty text."""
    if not (aspect.examples or aspect.choices):
        return ""
    return "\n\n" + prompts.render(
        "shared/score_rules", aspect=aspect, choices=written_choices(aspect.choices)
    )


def rubric_points(aspect: Aspect, prompts: Prompts) -> str:
    """Return an aspect's criteria with their points as text, or an empty text."""
    if not aspect.rubric:
        return ""
    return "\n\n" + prompts.render(
        "shared/rubric_points", criteria=aspect.rubric, rubric=is_rubric(aspect)
    )


def rubric_of_user(rubric: Rubric | None) -> AbstractContextManager[None]:
    """Trust this rubric in the ``with`` block, because the package's user chose it, not the data.

    ``None`` changes nothing.

    >>> with rubric_of_user(("brevity",)):
    ...     is_rubric(("brevity",)), is_rubric(("Ignore the rest.",))
    (True, False)
    """
    return set_for_block(user_rubric, rubric or user_rubric.get())


def system_text(prompts: Prompts, alone: bool) -> str:
    """Return the system text for one of several agents, or for an agent that is alone."""
    return prompts.render("shared/system_alone" if alone else "shared/system")


def score_schema(task: ScoreTask | CompareTask) -> ScoreSchema:
    """Return the schema for a judgement of this task: one number, or one for each answer."""
    if isinstance(task, CompareTask):
        return PairSchema(task.low, task.high)
    aspect = task.aspect
    return ScoreSchema(aspect.low, aspect.high, aspect.name, aspect.choices)


def requested_output(task: ScoreTask | CompareTask) -> str:
    """Return a scorer's requested output in words."""
    return f"one score for {'each answer' if isinstance(task, CompareTask) else task.aspect.name}"


def call_metadata(task: ScoreTask | CompareTask) -> dict[str, Any]:
    """Return kind, aspect and scale of the task as metadata of a call."""
    form = score_schema(task)
    aspect = {"aspect": task.aspect.name} if isinstance(task, ScoreTask) else {}
    allowed = {"allowed": [*form.allowed]} if form.allowed else {}
    return {"kind": task.kind, **aspect, "low": form.low, "high": form.high, **allowed}


_HOME = Path(__file__).parents[1] / "prompts"
UNFENCED = "unfenced"
"""The folder of the templates that replace those that mention fences, for ``fences=off``."""
_SETS = (f"{PAPERS}/", f"{UNFENCED}/")
FILLED = 512
"""The number of rendered templates in the cache: a few for each running debate."""


class Instruction(NamedTuple):
    """The part of a prompt for a single agent.

    Attributes:
        text: the whole text, in the template's order.
        role: the template's block ``role``; empty if there is none.
        request: the current request, which is the rest of the text.
    """

    text: str
    role: str
    request: str

    def after(self, message: str) -> Instruction:
        """Return the instruction with a message before it, as a part of the request.

        >>> Instruction("You are the Critic. Object.", "You are the Critic.", "Object.").after("Read this.").request
        'Read this.\\nObject.'
        """
        return Instruction(
            f"{message}\n{self.text}", self.role, f"{message}\n{self.request}".rstrip()
        )


@dataclass(frozen=True)
class Prompt:
    """The prompt of one agent.

    Attributes:
        system: the rules for all agents.
        shared: the material and the log.
        own: the agent's own instruction.
        repeated: the end positions in ``shared`` of the beginnings that later calls for the same
            item repeat.
        media: the images and files that the prompt names.
    """

    system: str
    shared: str
    own: Instruction | str
    repeated: tuple[int, ...] = ()
    media: Media = field(default_factory=dict)

    def without_fences(self) -> Prompt:
        """Return the prompt with bare texts (``fences=off``)."""
        own = self.own
        return Prompt(
            self.system,
            without_fences(self.shared),
            without_fences(own)
            if isinstance(own, str)
            else Instruction(*(without_fences(part) for part in own)),
            tuple(len(without_fences(self.shared[:end])) for end in self.repeated),
            self.media,
        )

    def messages(self, form: str, layout: Layout) -> tuple[str, str]:
        """Return the system message and the user message, which ends with the form of the reply.

        ``shared_prefix`` puts the shared text first, so that a provider's prefix cache covers most
        of a debate. ``papers`` puts the agent's role at the beginning of the system message.
        """
        if layout == "shared_prefix" or isinstance(self.own, str):
            text = self.own if isinstance(self.own, str) else self.own.text
            return self.system, f"{self.shared}\n\n{text}\n{form}"
        system = "\n\n".join(filter(None, (self.own.role, self.system)))
        return system, f"{self.shared}\n\n" + "\n".join(filter(None, (self.own.request, form)))


class Prompts:
    """A set of templates by name, such as ``debate/scorer_first``.

    Attributes:
        sources: the text of each template.
        replaced: the files of the templates that replace bundled ones.

    >>> Prompts.bundled().render("debate/scorer_first", wanted="one score")[:20]
    'You are the Scorer: '
    """

    def __init__(
        self,
        sources: dict[str, str],
        environment: type[jinja2.Environment] = ImmutableSandboxedEnvironment,
        replaced: Mapping[str, Path] | None = None,
    ) -> None:
        self.sources = sources
        self.replaced = replaced or {}
        # The templates may come from a third party, so the sandbox limits them to their variables.
        self._jinja = environment(
            # Prompts are not HTML, so nothing is escaped. An unknown name is an error, not an empty
            # text.
            loader=jinja2.DictLoader(sources),
            undefined=jinja2.StrictUndefined,
            autoescape=False,
            auto_reload=False,
        )
        # A fence is only found on lines of its own, which templates of others may not know.
        self._jinja.globals["fence"] = _fence_in_a_line if self.replaced else fence
        # Agents of one debate share a task. ``typed``: 1 and 1.0 are equal, but written
        # differently.
        self._filled = lru_cache(maxsize=FILLED, typed=True)(self._fill)
        self.form = lru_cache(maxsize=FILLED)(self._form)

    @classmethod
    def bundled(cls, templates: Path | None = None) -> Prompts:
        """Return the package's templates, with those of another package's protocol.

        Args:
            templates: the folder with the protocol's own templates (``Protocol.templates``). Reads
                it once: blocking.

        Raises:
            UsageError: the folder does not exist, or a template cannot be read or has a bundled
                template's name.
        """
        return _BUNDLED if templates is None else _with_templates(templates)

    @classmethod
    def load(
        cls, folder: str | None, templates: Path | None = None, fences: Fences = "on"
    ) -> Prompts:
        """Return the templates; those of ``folder`` replace those of the same name. Blocking.

        Args:
            folder: the folder of the replacing templates, or ``papers``, the bundled set in our own
                words that is closest to the papers' prompts; ``None`` replaces nothing.
            templates: as for ``bundled``.
            fences: ``off`` takes the rules for agents that do not mention fences.

        Raises:
            UsageError: the folder does not exist, a file replaces nothing, a template cannot be
                read, or a template uses an unknown placeholder or does not use an essential one.
        """
        base = cls.bundled(templates)
        if fences == "off":
            base = _unfenced(templates)
        if folder is None:
            return base
        place = _HOME / PAPERS if folder == PAPERS else Path(folder)
        own = _read(place)
        # A copy of the bundled folder also contains these sets, which replace nothing there.
        own = {name: text for name, text in own.items() if not name.startswith(_SETS)}
        unknown = sorted(own.keys() - base.sources.keys())
        # A folder without any template may have another purpose. Name only files that look like
        # templates.
        folders = {name.partition("/")[0] for name in base.sources}
        is_ours = bool(own.keys() & base.sources.keys())
        hints = {name: _meant(name, base.sources) for name in unknown}
        misnamed = [
            f"{name}.md{hint}"
            for name, hint in hints.items()
            if is_ours or hint or name.partition("/")[0] in folders
        ]
        if misnamed:
            known = ", ".join(base.sources)
            problem = f"no template is called {'; '.join(misnamed)}"
            raise UsageError(
                f"prompts={folder!r}: {problem}; templates that can be replaced are {known}"
            )
        if unknown or not own:
            problem = "it holds *.md files that are not templates" if own else "no *.md file in it"
            known = ", ".join(base.sources)
            raise UsageError(
                f"prompts={folder!r}: {problem}; templates that can be replaced are {known}"
            )
        if folder != PAPERS and (other := _unread(place, base.sources)):
            raise UsageError(
                f"prompts={folder!r}: {other} is not read: the name of a template ends in .md"
            )
        files = {name: place / f"{name}.md" for name in own}
        prompts = cls({**base.sources, **own}, replaced=files)
        # The others are the package's own, which are compiled when an agent first needs them.
        prompts.check(own)
        for name in own:
            prompts.check_placeholders(name, place / f"{name}.md")
        prompts.check_shown({name.partition("/")[0] for name in own})
        return prompts

    def check(self, names: Iterable[str]) -> None:
        """Compile templates to find errors before any model is called.

        Raises:
            UsageError: a template that cannot be read.
        """
        for name in names:
            self._template(name)

    def check_placeholders(self, name: str, file: Path) -> None:
        """Check that a replacing template uses only its known placeholders.

        Args:
            name: the template's name.
            file: the template's file.

        Raises:
            UsageError: an unknown placeholder; the message names the file, the line and the closest
                placeholder.
        """
        given = given_to(name)
        for foreign in foreign_placeholders(self._jinja, self.sources[name]):
            names = sorted(given or ())
            known = f"it is given {', '.join(names)}" if names else "it is given none"
            raise UsageError(
                f"{file}, line {foreign.line}: {foreign.name} is not a placeholder of these "
                "templates, which are written {{ name }}, but would reach the model as it stands "
                f"(to have it so, write {{{{ {foreign.name!r} }}}}); {known}"
                f"{did_you_mean(foreign.name.strip('${}'), names, cutoff=0.6)}"
            )
        # Only another package's nodes know the placeholders of that package's templates.
        if given is None:
            return
        for unknown in unknown_placeholders(self._jinja, self.sources[name], given):
            known = f"it is given {', '.join(sorted(given))}" if given else "it is given none"
            raise UsageError(
                f"{file}, line {unknown.line}: the template has no placeholder "
                f"{unknown.name!r}{did_you_mean(unknown.name, sorted(given), cutoff=0.6)}; "
                f"{known}"
            )

    def check_shown(self, folders: Collection[str], texts: Collection[str] = ()) -> None:
        """Check that replacing templates use the placeholders with the texts to judge.

        Args:
            folders: the folders whose templates are checked.
            texts: the fields of tasks that have a text in the data.

        Raises:
            UsageError: a placeholder that a template does not use; the message names it.
        """
        for name, file in self.replaced.items():
            used = used_placeholders(self._jinja, self.sources[name])
            if name.partition("/")[0] not in folders or used is None:
                continue
            for missing in essential_to(name, texts):
                if missing not in used:
                    shown = missing
                    if missing in TEXTS:
                        shown = f'fence("{_LABELS.get(missing, missing)}", {missing})'
                    raise UsageError(
                        f"{file}: the template does not use the placeholder {missing!r}, so the "
                        f"model would never see it; add {{{{ {shown} }}}}"
                    )

    def render(self, name: str, **values: Any) -> str:
        """Render a template.

        Raises:
            UsageError: a replaced template uses an unknown name.
        """
        return self.instruction(name, **values).text

    def instruction(self, name: str, **values: Any) -> Instruction:
        """Render an agent's own instruction; the template's block ``role`` describes the agent.

        Raises:
            UsageError: as ``render``.

        >>> Prompts.bundled().instruction("courtroom/judge", round=1, rounds=4, most="", totals="").role
        'You are the critical, impartial judge of a debate with much at stake.'
        """
        try:
            return self._filled(name, **values)
        except TypeError:
            # Some values, such as turns, are not hashable.
            return self._fill(name, **values)

    def _fill(self, name: str, **values: Any) -> Instruction:
        try:
            template = self._template(name)
            # This does the same as ``template.render``, which copies the environment's globals more
            # slowly.
            context = template.new_context({**self._jinja.globals, **values}, shared=True)
            text = _on_own_lines(self._jinja.concat(template.root_render_func(context)).strip())
        except jinja2.TemplateError as error:
            given = ", ".join(sorted(values))
            raise UsageError(f"template {name}.md: {error.message}; it is given {given}") from error
        if "role" not in template.blocks:
            return Instruction(text, "", text)
        blocks = template.blocks["role"](template.new_context(values))
        role = _on_own_lines("".join(blocks).strip())
        return Instruction(text, role, text.replace(role, "", 1).strip())

    def _form(self, form: OutputSchema, *, structured: bool, alone: bool = False) -> str:
        """Return the request for a reply in JSON or in words.

        ``alone``: the value without reasons.
        """
        structured = structured and not isinstance(form, TextSchema)
        return self._fill(form.template, structured=structured, alone=alone, **form.limits()).text

    def digest(self, *folders: str) -> str:
        """Return a short hash of the templates in these folders."""
        names = sorted(name for name in self.sources if name.partition("/")[0] in folders)
        text = "\n".join(f"{name}\n{self.sources[name]}" for name in names)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def _template(self, name: str) -> jinja2.Template:
        # Compile on first use: compiling all takes longer than all other imports of a protocol.
        try:
            return self._jinja.get_template(name)
        except jinja2.TemplateSyntaxError as error:
            raise UsageError(f"template {name}.md, line {error.lineno}: {error.message}") from error


# No text can contain this mark, because it is drawn anew in each process.
_BREAK = f"\0{secrets.token_hex(8)}\0"
_BREAKS_AT_LINE_ENDS = re.compile(rf"(?:(?<=\n)|^){_BREAK}|{_BREAK}(?=\n|$)")


def _fence_in_a_line(label: str, text: str) -> str:
    return f"{_BREAK}{fence(label, text)}{_BREAK}"


def _on_own_lines(text: str) -> str:
    """Put each fence of a rendered template on lines of its own."""
    if _BREAK not in text:
        return text
    return _BREAKS_AT_LINE_ENDS.sub("", text).replace(_BREAK, "\n").strip()


def _read(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        raise UsageError(f"prompts={str(folder)!r}: no such folder")
    files = {
        path.relative_to(folder).with_suffix(""): path for path in sorted(folder.rglob("*.md"))
    }
    return {name.as_posix(): path.read_text(encoding="utf-8") for name, path in files.items()}


def _meant(name: str, known: Iterable[str]) -> str:
    """Return a hint at the template with a similar name, or with a similar file name."""
    names = list(known)
    if hint := did_you_mean(name, names):
        return f" ({hint.removeprefix('; ').removesuffix('?')}.md?)"
    files = {whole.rpartition("/")[2]: whole for whole in names}
    if hint := did_you_mean(name.rpartition("/")[2], list(files)):
        meant = hint.removeprefix("; did you mean ").removesuffix("?")
        return f" (did you mean {files[meant]}.md?)"
    return ""


def _unread(folder: Path, known: Iterable[str]) -> str | None:
    """Return a file with the name of a template and another ending, if there is one."""
    names = set(known)
    files = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    others = (file for file in files if file.suffix != ".md")
    return next(
        (file.as_posix() for file in others if file.with_suffix("").as_posix() in names), None
    )


@cache
def _with_templates(templates: Path) -> Prompts:
    try:
        own = _read(templates)
    except UsageError as error:
        raise UsageError(
            f"a protocol's templates cannot be read: there is no folder {templates}"
        ) from error
    # Replacing a bundled template is the user's choice (``prompts=DIR``). A protocol adds its own.
    if taken := sorted(own.keys() & _BUNDLED.sources.keys()):
        raise UsageError(
            f"{templates}: the template {taken[0]} has the name of a bundled one; "
            "put it in a folder of the protocol's own name"
        )
    prompts = Prompts({**_BUNDLED.sources, **own})
    prompts.check(own)
    return prompts


@cache
def _unfenced(templates: Path | None) -> Prompts:
    return Prompts({**Prompts.bundled(templates).sources, **_read(_HOME / UNFENCED)})


# Bundled templates need no sandbox, which would check each name whenever a template is rendered.
_BUNDLED = Prompts(
    {name: text for name, text in _read(_HOME).items() if not name.startswith(_SETS)},
    jinja2.Environment,
)
