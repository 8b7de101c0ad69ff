"""The command line. May import every layer; nothing imports it.

Where to look:
    `main.py`: the table of commands.
    `lazy_group.py`: groups that import a command at its first use.
    `options.py`: options of commands from the settings of the functions in `api`.
    `output.py`: stdout, stderr and `--json`.
    `progress.py`: progress lines.
    `process_signals.py`: Ctrl-C, stop signals and memory settings.
"""
