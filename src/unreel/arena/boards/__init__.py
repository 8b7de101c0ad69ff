"""The two leaderboards, ablations and comparisons of a season.

Where to look:
    `ranking.py`: both leaderboards.
    `rates.py`: rates with confidence intervals.
    `entrant_comparison.py`: differences between every two entrants.
    `leaderboard_metrics.py`: names and descriptions of the metrics.
    `leaderboard_types.py`: rows and cells of the leaderboards.
    `ablations.py`: effects of one changed setting.
    `reviewer_bias.py`: bias of reviewers towards real.
    `preference_ranking.py`: ranking by answers about pairs.
"""
