"""Checks against cheating and luck in a season.

Where to look:
    `holdout.py`: hidden scenes and canaries.
    `team_attempts.py`: repeated attempts of a team.
    `similar_reviewers.py`: reviewers that make the same errors.
"""
