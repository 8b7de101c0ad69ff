"""The two leaderboards, ablations and comparisons of a season.

Where to look:
    `ranking.py`: both leaderboards.
    `rates.py`: rates with confidence intervals.
    `comparison.py`: differences between every two entrants.
    `figures.py`: names of the metrics.
    `ablations.py`: effects of one changed setting.
    `bias.py`: bias of reviewers towards real.
    `preference.py`: ranking by answers about pairs.
"""
