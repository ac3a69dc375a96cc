"""One protocol under many settings."""
