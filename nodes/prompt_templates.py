"""Prompt templates: text files, read once, replaceable file by file.

Every file under ``prompts/`` is a Jinja template. A folder of one's own replaces those it holds a file of the
same name for; the others stay.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from ..state.errors import UsageError
from .delimiters import fence

_HOME = Path(__file__).parent / "prompts"


@dataclass(frozen=True)
class Prompt:
    """What one agent is shown, from what all agents share to what is its own.

    Kept in this order in every message, so that a provider's prefix cache pays for most of a debate.
    """

    system: str
    shared: str
    own: str

    @property
    def user(self) -> str:
        """The user message."""
        return f"{self.shared}\n\n{self.own}"


class Prompts:
    """A set of templates by name, such as ``debate/scorer_first``.

    >>> Prompts.bundled().render("debate/scorer_first", wanted="one score")[:20]
    'You are the Scorer. '
    """

    def __init__(self, sources: dict[str, str]) -> None:
        self.sources = sources
        self._jinja = jinja2.Environment(
            loader=jinja2.DictLoader(sources), undefined=jinja2.StrictUndefined, autoescape=False
        )
        self._jinja.globals["fence"] = fence
        self._templates = {name: self._compiled(name) for name in sources}

    @classmethod
    def bundled(cls) -> Prompts:
        """The templates that come with the package."""
        return _BUNDLED

    @classmethod
    def load(cls, folder: str | None) -> Prompts:
        """The bundled templates, with those of ``folder`` in place of their namesakes. Reads files: blocking.

        Raises:
            UsageError: no such folder, a file that replaces nothing, or a template that cannot be read.
        """
        if folder is None:
            return _BUNDLED
        own = _read(Path(folder))
        unknown = sorted(own.keys() - _BUNDLED.sources.keys())
        if unknown or not own:
            problem = f"no template is called {', '.join(unknown)}" if own else "no *.md file in it"
            known = ", ".join(_BUNDLED.sources)
            raise UsageError(f"prompts={folder!r}: {problem}; templates that can be replaced are {known}")
        return cls({**_BUNDLED.sources, **own})

    def render(self, name: str, **values: Any) -> str:
        """Fill in a template.

        Raises:
            UsageError: a replaced template uses a name that it is not given.
        """
        try:
            return self._templates[name].render(values).strip()
        except jinja2.TemplateError as error:
            raise UsageError(
                f"template {name}.md: {error.message}; it is given {', '.join(sorted(values))}"
            ) from error

    def digest(self, *folders: str) -> str:
        """A short hash of the templates in these folders."""
        names = sorted(name for name in self.sources if name.partition("/")[0] in folders)
        text = "\n".join(f"{name}\n{self.sources[name]}" for name in names)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def _compiled(self, name: str) -> jinja2.Template:
        try:
            return self._jinja.get_template(name)
        except jinja2.TemplateSyntaxError as error:
            raise UsageError(f"template {name}.md, line {error.lineno}: {error.message}") from error


def _read(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        raise UsageError(f"prompts={str(folder)!r}: no such folder")
    return {
        path.relative_to(folder).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.md"))
    }


_BUNDLED = Prompts(_read(_HOME))
