"""The two leaderboards, ablations and comparisons of a season.

Where to look:
    `ranking.py`: both boards.
    `rates.py`: rates with intervals.
    `comparison.py`: pairs of entrants.
    `figures.py`: names of the metrics.
    `ablations.py`: effects of one change.
    `bias.py`: bias towards real.
    `preference.py`: ranking by pairs.
"""
