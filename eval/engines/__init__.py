"""Carry out a run with several processes, on one machine or on many; the engine is Ray."""
