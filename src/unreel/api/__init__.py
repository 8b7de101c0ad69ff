"""The Python API: a function for each command, with the settings that are the command's options.

Where to look:
    `runs.py`: `evaluate`, `open_run` and `compare`.
    `review.py`: `review`.
    `review_files.py`: reviews of files with their evidence pages.
    `installation.py`: what this machine has, and what is missing.
    `option_values.py`: names that options accept.
    `score.py`: `score`.
    `curate.py`: `curate`, and what is done with a curation or its benchmark.
    `arena.py`: `run_season`, `rank_season`, and the other jobs of a season.
    `annotation.py`: `open_campaign`, and what is done with a campaign.
    `label_studio.py`: the server of annotators, its tasks and answers.
    `contacts.py`: texts about the servers and programs that a job will use.
    `shared_settings.py`: settings that several commands share.
    `training.py`: `train`.
    `sources.py`: `open_benchmark` and `open_media`.
"""
