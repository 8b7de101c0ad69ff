"""The two leaderboards, ablations and comparisons of a season.

Where to look:
    `ranking.py`: both leaderboards, with rates and confidence intervals.
    `entrant_comparison.py`: differences between every two entrants.
    `leaderboard_metrics.py`: names and descriptions of the metrics, and the rows of the leaderboards.
    `ablations.py`: effects of one changed setting, and bias of reviewers towards real.
    `preference_ranking.py`: ranking by answers about pairs.
"""
