"""Reviewers that look at nothing, or at what no reviewer should need: what a model must beat."""
