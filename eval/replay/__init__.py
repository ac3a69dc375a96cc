"""Recorded replies, judged again without a call."""
