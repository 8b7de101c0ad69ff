"""Reviewers side by side over the same questions: boards of panels, each a chart and the table behind it."""
