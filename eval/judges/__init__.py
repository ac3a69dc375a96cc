"""Make a judge in one line: a function, a tool, an agent, an evaluator, a fixture of pytest."""
