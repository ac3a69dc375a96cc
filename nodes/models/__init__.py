"""Call chat models: find them by name, keep connections, read errors, limit and retry the calls."""
