"""The answers of a season as columns and counts.

Where to look:
    `answer_table.py`: the table of answers.
    `season_answers.py`: clips and answers of a season, read from its folder.
    `human_votes.py`: votes of people.
    `resampled_counts.py`: counts of answers, also on bootstrap resamples.
"""
