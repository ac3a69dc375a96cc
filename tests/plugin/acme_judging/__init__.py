"""What another package adds to jurygraph; ``docs/extending.md`` walks through it."""
