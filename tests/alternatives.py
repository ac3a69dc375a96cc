"""Split patterns into their alternatives, so that a test can check that each of them is needed."""

import re
from collections.abc import Iterable


def alternatives(pattern: str) -> list[str]:
    """Return the alternatives at the top level of a pattern; of a verbose one, with its comments.

    >>> alternatives(r"a(b|c)|[|]|d\\|e")
    ['a(b|c)', '[|]', 'd\\\\|e']
    """
    parts = [""]
    depth = 0
    in_class = False
    in_comment = False
    verbose = "\n" in pattern
    tokens = re.findall(r"\\.|.", pattern, re.DOTALL)
    for token in tokens:
        if in_comment:
            in_comment = token != "\n"
        elif in_class:
            in_class = token != "]"
        elif token == "[":
            in_class = True
        elif token == "#" and verbose:
            in_comment = True
        elif token in "()":
            depth += 1 if token == "(" else -1
        elif token == "|" and depth == 0:
            parts.append("")
            continue
        parts[-1] += token
    return parts


def unneeded(pattern: re.Pattern[str], examples: Iterable[str]) -> list[str]:
    """Return the alternatives without which every example is still found."""
    # Lines in which nothing but one alternative matches.
    examples = list(examples)
    return unneeded_among(alternatives(pattern.pattern), pattern.flags, examples)


def unneeded_among(parts: list[str], flags: int, examples: list[str]) -> list[str]:
    """Return the patterns that no example needs: it is found by another of them, too."""
    compiled = {part: re.compile(part, flags & ~re.UNICODE) for part in parts}
    found = [[part for part in parts if compiled[part].search(example)] for example in examples]
    needed = {matching[0] for matching in found if len(matching) == 1}
    return [part.strip() for part in parts if part not in needed]
