"""Seasons: competitions between creators and reviewers, with one leaderboard for each.

Where to look:
    `season/`: the season file, its benchmark and folder.
    `run/`: generation of clips and questions to reviewers.
    `answers/`: the stored answers as columns.
    `boards/`: both leaderboards and ablations.
    `entry_check.py`: audit of the clips of an entry.
"""
