"""The Python API: one function per command, with the same name.

Where to look:
    `runs.py`: `evaluate` and `open_run`.
    `review.py`: `review`.
    `score.py`: `score`.
    `compare.py`: `compare`.
    `curate.py`: `curate`.
    `sources.py`: `open_benchmark` and `open_media`.
"""
