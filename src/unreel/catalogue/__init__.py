"""Public benchmarks and published checkpoints by name, as data files. Imports `protocols`, `recipes` and `core`.

Where to look:
    `entries.py`: schema of an entry, and the entries by name.
    `benchmarks/`: one TOML file for each benchmark.
    `models/`: one TOML file for each checkpoint.
"""
