"""TOML recipes: closed, bounded sections with uniform error messages.

Where to look:
    `section.py`: base class of sections.
    `validation.py`: validation of recipes, and changes from the command line.
    `documentation.py`: documentation of every key.
"""
