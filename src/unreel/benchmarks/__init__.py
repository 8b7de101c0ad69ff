"""Benchmarks: clips with ground truth, and answers from files. Imports `protocols`, `media`, `stats` and `core`.

Where to look:
    `loader.py`: detection and loading of a layout.
    `entry.py`: one row of a benchmark, and the names of layouts.
    `columns.py`: columns of tables.
    `check.py`: check of a user's benchmark.
    `questions.py`: from entries to questions.
    `imported_answers.py`: answers from a file.
    `votes.py`: human votes from a file.
    `pairing.py`: pairs of a real and a generated clip.
    `parquet.py`: untrusted Parquet files.
    `localisation/`: segments in the formats of other projects.
    `published/`: the results of the papers, and their recalculation.
    `export/`: tasks for lmms-eval and VLMEvalKit.
"""
