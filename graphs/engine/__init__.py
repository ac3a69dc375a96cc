"""The graph class of every protocol, judges nested in graphs, and the registry of protocols."""
