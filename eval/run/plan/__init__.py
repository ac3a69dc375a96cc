"""The plan of a run before any call: the verdicts, the settings, and the price."""
