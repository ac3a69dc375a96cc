"""Show docstrings' examples as code: outside a section of that name, ``>>>`` would be taken for a quotation."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*\n?(?:.+\n?)*", re.MULTILINE)
"""A line that begins with the prompt, and all lines up to the next empty one."""


class FencedExamples(griffe.Extension):
    """Put a fence round each example."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(
                lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", obj.docstring.value
            )
