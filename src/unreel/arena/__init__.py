"""Seasons: competitions between creators and reviewers, with one leaderboard for each.

Where to look:
    `season/`: the season file, its benchmark and folder.
    `run/`: generation of clips and questions to reviewers.
    `submission/`: entries of teams, and the log of the season.
    `answers/`: the stored answers as columns.
    `boards/`: both leaderboards and ablations.
    `fairness/`: hidden scenes, canaries, repeated attempts, similar reviewers.
    `season_ranking.py`: leaderboards from a season's folder.
"""
