"""What a call goes through: models by name, connections, faults, limits, attempts."""
