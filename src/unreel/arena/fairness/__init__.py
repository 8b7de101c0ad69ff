"""Checks for fair play.

Where to look:
    `holdout.py`: hidden scenes and canaries.
    `attempts.py`: repeated attempts of a team.
    `similar_reviewers.py`: reviewers that answer alike.
"""
