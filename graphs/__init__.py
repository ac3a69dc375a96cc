"""The protocols, one file each: ``from jurygraph.graphs import debate``."""
