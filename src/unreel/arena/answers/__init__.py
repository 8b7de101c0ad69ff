"""The answers of a season as columns and counts.

Where to look:
    `play.py`: the table of answers.
    `read_play.py`: from stored runs.
    `people.py`: human votes.
    `tally.py`: counts and their resamples.
    `lineup.py`: creators and scenes of the clips.
"""
