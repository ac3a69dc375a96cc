"""Reference metrics, beside the judges."""
