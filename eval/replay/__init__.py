"""Score recorded replies again without a call: those of any provider, or of a past run (``docs/replay.md``).

``recording`` defines what a recording gives and answers a run's calls from it; ``recording_sources`` reads one from a
file or a past run.
"""
