"""Tests that every reviewer or creator must pass, for those of unreel and for yours.

Where to look:
    `reviewers.py`: tests of a reviewer.
    `creators.py`: tests of a creator.
"""
