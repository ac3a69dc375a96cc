"""Replay of recorded replies of any provider or past run, without calls (``docs/replay.md``).

``recording`` defines the content of a recording and answers a run's calls from it;
``recording_sources`` reads one from a file or a past run.
"""
