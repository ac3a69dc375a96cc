"""Several runs looked at together."""
