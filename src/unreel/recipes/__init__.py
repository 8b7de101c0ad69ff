"""TOML recipes: closed, bounded sections with uniform error messages.

Where to look:
    `section.py`: base class of sections.
    `check.py`: reading and validation, and changes from the command line.
    `documentation.py`: documentation of every key.
"""
