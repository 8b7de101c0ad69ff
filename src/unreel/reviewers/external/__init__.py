"""External programs and HTTP services as reviewers.

Where to look:
    `command.py`: reviewers that run a program, `command:NAME`.
    `service.py`: reviewers that call an HTTP service, `http:NAME`.
    `bubblewrap.py`: file system of a sandboxed program.
    `syscall_filter.py`: seccomp filter of a sandboxed program.
    `confined_program.py`: limits of a program, and a weak sandbox without bubblewrap.
    `watchdog.py`: limits of memory and threads.
    `program_run.py`: one run of a program.
    `scores.py`: from a detector's score to an answer.
"""
