"""Plan a run before any call: what will be judged, with which settings, and at what price."""
