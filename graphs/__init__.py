"""The protocols, one file each: ``from jurygraph.graphs import debate``; and wrappers that take any of them.

``load_graph`` returns the graph of a protocol whose name is known only at run time, or that is a file.
"""

from .audit import audit
from .calibrated import calibrated
from .cascade import cascade
from .given_graphs import load_graph
from .options import AnyJudge, OwnText, ProtocolName
from .ranked import ranked
from .refine import refine
from .repeated import repeated
from .review import review

__all__ = [
    "AnyJudge",
    "OwnText",
    "ProtocolName",
    "audit",
    "calibrated",
    "cascade",
    "load_graph",
    "ranked",
    "refine",
    "repeated",
    "review",
]
