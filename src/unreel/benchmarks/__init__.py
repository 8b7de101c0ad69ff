"""Benchmarks: clips with ground truth, and answers from files. Imports `protocols`, `media`, `stats` and `core`.

Where to look:
    `loader.py`: detection of the layout, and opening.
    `layout.py`: layouts by name.
    `clip_tables.py`: benchmarks in one table.
    `entry.py`: one row of a benchmark.
    `unique_names.py`: names that occur twice.
    `columns.py`: columns of tables.
    `tables.py`: table files; Parquet is read in a confined process by `parquet_task.py`.
    `check.py`: check of a user's benchmark.
    `questions.py`: from entries to questions.
    `imported_answers.py`: answers from a file.
    `votes.py`: human votes from a file.
    `pairing.py`: pairs of a real and a generated clip.
    `localisation/`: segments in the formats of other projects.
    `published/`: the results of the papers.
    `export/`: tasks for lmms-eval and VLMEvalKit.
"""
