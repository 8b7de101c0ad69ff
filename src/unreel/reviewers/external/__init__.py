"""Programs and HTTP services as reviewers.

Where to look:
    `command.py`: `command:` programs.
    `service.py`: `http:` services.
    `bubblewrap.py`: mounts of a confined program.
    `syscall_filter.py`: seccomp filter.
    `confined_program.py`: limits of a program, and confinement without bubblewrap.
    `watchdog.py`: memory limit.
    `program_run.py`: one run of a program.
    `scores.py`: from a score to an answer.
"""
