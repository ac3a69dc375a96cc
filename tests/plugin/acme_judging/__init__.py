"""An example of another package that extends jurygraph; see ``docs/extending.md``."""
