"""Score recorded replies again without a call: those of any provider, or of a past run (``docs/replay.md``).

``recording`` defines what a recording gives, ``from_file`` reads files and ``from_run`` past runs, and
``replay_pipeline`` answers a run's calls from what they hold.
"""
