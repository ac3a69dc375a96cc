"""The protocols, one file each: ``from jurygraph.graphs import debate``; and wrappers that take any of them.

``load_graph`` returns the graph of a protocol whose name is known only at run time, or that is a file.
"""

from .audit import audit as audit
from .calibrated import calibrated as calibrated
from .cascade import cascade as cascade
from .given_graphs import load_graph as load_graph
from .options import AnyJudge as AnyJudge
from .options import OwnText as OwnText
from .options import ProtocolName as ProtocolName
from .ranked import ranked as ranked
from .refine import refine as refine
from .repeated import repeated as repeated
from .review import review as review
