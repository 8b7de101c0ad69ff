"""Execution and storage of jobs: stages, runners, tables. The only folder that imports Ray and Lance.

Where to look:
    `run.py`: one call that runs a job.
    `stage.py`: one step of a job.
    `local_runner.py`: the runner on this machine.
    `ray_runner.py`: the runner on Ray.
    `pending_questions.py`: the items that are due.
    `committer.py`: the one writer of a table.
    `table.py`: Lance tables with unique keys.
    `start_log.py`: items in progress, so that a crash is noticed.
    `crash_suspects.py`: rows that crash a worker.
    `location.py`: folders and S3 prefixes.
    `clip_facts.py`: hashes and properties of a benchmark's clips.
    `downloads.py`: clips from URLs.
"""
