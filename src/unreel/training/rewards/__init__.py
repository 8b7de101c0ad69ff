"""Rewards of answers from the ground truth: pure functions, the same for every trainer."""
