"""Boards that compare reviewers on the same questions, in panels with charts and tables."""
