"""Engines that carry out a run with several processes, on one machine or on many, with Ray."""
