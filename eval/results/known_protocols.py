"""The facts about protocols that readers of runs look up by name, without importing graphs."""

from __future__ import annotations

from collections.abc import Mapping

from ...nodes.common.plugins import plugins
from ...state.protocol_facts import BUNDLED, ProtocolFacts
from ...state.transcript import RoleKind


def known_protocols() -> Mapping[str, ProtocolFacts]:
    """Return the facts about all installed protocols by name, in alphabetical order.

    Protocols of other packages have them in their records. Only these need an import of graphs.

    Raises:
        UsageError: a registered module that cannot be loaded or does not define a protocol.

    >>> known_protocols()["single"].is_baseline
    True
    """
    if not plugins("jurygraph.protocols"):
        return BUNDLED
    from ...graphs.engine.registry import protocols

    return {name: module.protocol for name, module in protocols().items()}


def role_kinds(name: str) -> Mapping[str, RoleKind]:
    """Return the kind of each role of a protocol; roles that are not listed are ``scores``.

    >>> role_kinds("samre")["juror"], role_kinds("repeated")["critic"]
    ('votes', 'objects')
    """
    if name in BUNDLED and (kinds := BUNDLED[name].role_kinds):
        return kinds
    # A protocol of another package or file, or a wrapper around one.
    from ...graphs.engine.registry import role_kinds as kinds_of

    return kinds_of(name)
