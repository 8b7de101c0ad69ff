"""Tests that every reviewer, creator or store of answers must pass, for those of unreel and for yours.

Where to look:
    `reviewers.py`: tests of a reviewer.
    `creators.py`: tests of a creator.
    `answer_stores.py`: tests of a store of answers.
"""
