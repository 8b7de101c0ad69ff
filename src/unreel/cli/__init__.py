"""The command line. May import every layer; nothing imports it.

Where to look:
    `main.py`: the table of commands.
    `lazy_group.py`: groups that import a command at its first use.
    `annotate/__init__.py`: a group of commands and their shared options; so for `arena` and `train`.
    `options.py`: options with one meaning in all commands.
    `output.py`: stdout, stderr and `--json`.
    `progress.py`: progress lines.
    `process_signals.py`: Ctrl-C, stop signals and memory settings.
"""
