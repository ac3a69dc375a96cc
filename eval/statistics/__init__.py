"""Statistics of the agreement between a judge and humans, each with its interval."""
