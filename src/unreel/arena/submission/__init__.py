"""Entries of teams, checked before any money is spent.

Where to look:
    `submit.py`: one submission.
    `entry.py`: ENTRY.toml.
    `creator_checks.py`: checks of a creator.
    `reviewer_checks.py`: checks of a reviewer.
    `copies.py`: copies of other clips.
    `file_leaks.py`: files that reveal their label.
    `log.py`: the append-only log.
    `accepted.py`: accepted entries.
"""
