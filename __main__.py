"""Run the command line with ``python -m jurygraph``."""

# Absolute, unlike other imports of the package: a tool that is started at the root finds this file as `__main__`, which
# is in no package.
from jurygraph.eval.cli.start import main

if __name__ == "__main__":
    main()
