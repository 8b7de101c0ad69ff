"""The Python API: functions that do the same as the commands.

Where to look:
    `runs.py`: `evaluate`, `open_run` and `compare`.
    `review.py`: `review`.
    `score.py`: `score`.
    `curate.py`: `curate`.
    `arena.py`: `run_season` and `rank_season`.
    `annotation.py`: `open_campaign`.
    `training.py`: `train`.
    `sources.py`: `open_benchmark` and `open_media`.
"""
