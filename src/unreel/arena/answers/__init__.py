"""The answers of a season as columns and counts.

Where to look:
    `answer_table.py`: table of answers, and counts, also on bootstrap resamples; it loads without an extra.
    `season_answers.py`: clips, answers and people's votes of a season, and the table of answers.
"""
