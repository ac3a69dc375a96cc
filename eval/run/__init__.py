"""What the calls of a run go through: nothing twice, nothing beyond what is allowed, nothing lost."""
