"""The two leaderboards, ablations and comparisons of a season.

Where to look:
    `ranking.py`: both leaderboards from a season's folder, with rates and confidence intervals.
    `leaderboard_metrics.py`: metrics and rows of the leaderboards, and differences between every two entrants.
    `ablations.py`: effects of one changed setting, and bias of reviewers towards real.
    `preference_ranking.py`: ranking by answers about pairs.
"""
