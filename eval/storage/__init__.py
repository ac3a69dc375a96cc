"""Create files and folders that their owner alone can read."""
