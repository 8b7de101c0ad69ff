"""Interfaces as tests, for our own reviewers and creators and for yours.

Where to look:
    `reviewers.py`: tests of a reviewer.
    `creators.py`: tests of a creator.
"""
