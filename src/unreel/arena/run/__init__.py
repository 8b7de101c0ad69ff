"""The run of a season: clips of creators, then answers of reviewers.

Where to look:
    `job.py`: the complete run.
    `forecast.py`: the dry run.
    `plan.py`: the order of questions under a budget.
    `budget.py`: the remaining budget.
    `creators.py`: clips that are missing.
    `make_clips.py`: the stage that makes a clip.
    `reviewers.py`: reviewers and their runs.
"""
