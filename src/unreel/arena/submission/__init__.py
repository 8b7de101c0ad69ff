"""Entries of teams, checked before the season spends money on them.

Where to look:
    `submit.py`: one submission.
    `entry.py`: ENTRY.toml.
    `creator_checks.py`: checks of a creator.
    `reviewer_checks.py`: checks of a reviewer.
    `copies.py`: near-copies of other clips.
    `file_leaks.py`: file properties that reveal the label.
    `log.py`: the append-only log.
    `accepted.py`: accepted entries.
"""
