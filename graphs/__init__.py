"""The evaluation protocols, one file each, and the wrappers that work with any of them.

Import a protocol with ``from jurygraph.graphs import debate``. ``load_graph`` returns the graph of
a protocol whose name is known only at run time, or that a file defines.
"""

from .engine.given_graphs import load_graph as load_graph
from .engine.options import AnyJudge as AnyJudge
from .engine.options import OwnText as OwnText
from .engine.options import ProtocolName as ProtocolName
from .wrappers.audit import audit as audit
from .wrappers.calibrated import calibrated as calibrated
from .wrappers.cascade import cascade as cascade
from .wrappers.chat import chat as chat
from .wrappers.court import court as court
from .wrappers.ranked import ranked as ranked
from .wrappers.refine import refine as refine
from .wrappers.repeated import repeated as repeated
from .wrappers.review import review as review
