"""Public benchmarks and published checkpoints by name, as data files. Imports `protocols`, `recipes` and `core`.

Where to look:
    `entries.py`: schema of an entry, and the entries by name.
    `hub.py`: commits and files of the Hugging Face hub; resumed and checked downloads.
    `benchmarks/`: one TOML file for each benchmark.
    `models/`: one TOML file for each checkpoint.
"""
