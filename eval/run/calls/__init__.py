"""The calls of a run: answering them within limits, judging items, tracing and stopping."""
