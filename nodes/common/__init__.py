"""Shared by models, replies and runtime: fences around data, plugins, server rules, sync bridge."""
