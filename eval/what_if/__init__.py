"""What if a turn had not been said? A run's debates, forked at that turn and judged on without it."""
