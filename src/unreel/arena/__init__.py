"""Creators against reviewers: seasons and two leaderboards.

Where to look:
    `season/`: the season file, its benchmark and folder.
    `run/`: clips and answers.
    `submission/`: entries of teams, and the log.
    `answers/`: answers as columns.
    `boards/`: both leaderboards and ablations.
    `fairness/`: hidden clips, canaries, repeated attempts, copies.
    `season_ranking.py`: from a folder to the standings.
"""
