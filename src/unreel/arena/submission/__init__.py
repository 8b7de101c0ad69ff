"""Entries of teams, checked before the season spends money on them.

Where to look:
    `submit.py`: one submission.
    `entry.py`: ENTRY.toml, and accepted entries.
    `creator_checks.py`: checks of a creator.
    `reviewer_checks.py`: checks of a reviewer.
    `clip_inspection.py`: near-copies of other clips, and file properties that reveal the label.
    `season_log.py`: the append-only log.
"""
