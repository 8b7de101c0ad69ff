"""Rejection sampling: training on the best of a model's own answers."""
