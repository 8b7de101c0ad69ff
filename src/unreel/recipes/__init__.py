"""TOML recipes: closed, bounded sections with uniform error messages.

Where to look:
    `validation.py`: base class of sections, validation of recipes, and changes from the command line.
    `documentation.py`: documentation of every key.
"""
