"""The wrappers as protocols of their own: by name, with settings, on the command line and in Studio."""
