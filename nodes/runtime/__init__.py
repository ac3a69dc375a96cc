"""Asks agents: prompts, forms of replies, calls, turns, and the verdict from the turns."""
