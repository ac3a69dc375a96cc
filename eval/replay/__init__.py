"""Recorded replies scored again without a call: of any provider, or of a past run (``docs/replay.md``).

``reading`` finds out what a file or folder is, ``lines`` and ``shapes`` read files, ``past`` reads runs; ``desk``
answers a run's calls from what they hold.
"""
