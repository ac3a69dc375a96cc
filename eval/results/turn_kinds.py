"""Find out what the turns of a result do to its verdict, from the result's protocol (``Protocol.role_kinds``)."""

from __future__ import annotations

from ...state.review_rules import KindOf
from .results import Result


def kind_of_turns(result: Result) -> KindOf:
    """Return the function that tells what a turn of this result does to the verdict; an unknown role ``scores``.

    >>> turn = {"role": "critic", "agent": "critic", "round": 1, "value": False}
    >>> kind_of_turns(Result(item="a", protocol="debate", status="ok"))(turn)
    'objects'
    """
    # Reading results needs no graphs: they are imported when the first transcript is looked at.
    from ...graphs import registry

    return registry.kind_of_turns(result.protocol, result.details)
