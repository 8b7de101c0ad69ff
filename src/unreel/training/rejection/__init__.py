"""Rejection sampling: the best of a model's own answers."""
