"""The answers of a season as columns and counts.

Where to look:
    `play.py`: the table of answers.
    `read_play.py`: the table from the stored runs; creators and scenes of the clips.
    `people.py`: human votes.
    `tally.py`: counts of answers, also on bootstrap resamples.
"""
