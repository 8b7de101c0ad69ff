"""External programs and HTTP services that score clips, as reviewers.

Where to look:
    `detector_program.py`: reviewers that run a program, `command:NAME`.
    `detector_service.py`: reviewers that call an HTTP service, `http:NAME`.
    `bubblewrap.py`: file system of a sandboxed program.
    `syscall_filter.py`: seccomp filter of a sandboxed program.
    `program_run.py`: one run of a program, with its limits.
    `detector_scores.py`: from a detector's score to an answer.
"""
