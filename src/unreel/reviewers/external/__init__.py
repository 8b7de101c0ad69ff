"""External programs and HTTP services that score clips, as reviewers.

Where to look:
    `detector_program.py`: reviewers that run a program, `command:NAME`.
    `detector_service.py`: reviewers that call an HTTP service, `http:NAME`.
    `program_sandbox.py`: the sandbox of a program, and one run in it with its limits.
    `detector_scores.py`: from a detector's score to an answer.
"""
