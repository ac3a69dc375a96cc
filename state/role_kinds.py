"""Name the ways in which the turns of a role can bear on the verdict."""

from __future__ import annotations

from typing import Literal

RoleKind = Literal["scores", "panel", "objects", "argues", "decides", "votes", "assists", "plans"]
"""The ways in which the turns of a role can bear on the verdict.

- ``scores``: gives the score that stands after a round; so does a role of which nothing is said.
- ``panel``: the same, as one of several agents whose scores are averaged or voted on.
- ``objects``: disputes the latest score (value ``False``) or accepts it (``True``); the next score answers it.
- ``argues``: speaks for one side and gives no score.
- ``decides``: gives the last word on what the rounds left open.
- ``votes``: one of several who vote when the rounds are over.
- ``assists``: passes on or sums up; what it says is no judgement.
- ``plans``: writes once in a run what all verdicts on an aspect share.
"""
