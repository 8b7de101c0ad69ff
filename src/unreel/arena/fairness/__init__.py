"""Checks for fair play: hidden clips, canaries, repeated attempts, similar reviewers."""
