"""The Python API: functions that do the same as the commands.

Where to look:
    `runs.py`: `evaluate` and `open_run`.
    `review.py`: `review`.
    `score.py`: `score`.
    `compare.py`: `compare`.
    `curate.py`: `curate`.
    `arena.py`: `run_season` and `rank_season`.
    `annotation.py`: `open_campaign`.
    `training.py`: `train`.
    `sources.py`: `open_benchmark` and `open_media`.
"""
