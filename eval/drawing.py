"""A protocol's graph as Mermaid text or as a picture."""

from __future__ import annotations

from ..graphs.registry import find_protocol
from ..state.errors import UsageError


def mermaid(protocol: str) -> str:
    """The graph in Mermaid's notation, which many editors and sites draw.

    >>> "scorer" in mermaid("debate")
    True
    """
    drawing: str = find_protocol(protocol).graph.get_graph(xray=True).draw_mermaid()
    return drawing


def svg(protocol: str) -> str:
    """The graph as an SVG picture.

    Raises:
        UsageError: the package that draws is not installed; says how to install it.
    """
    source = mermaid(protocol)
    try:
        import mermaidx
    except ImportError as error:
        raise UsageError("drawing pictures needs an extra: pip install 'jurygraph[draw]'") from error
    picture: str = mermaidx.render(source).svg()
    return picture
