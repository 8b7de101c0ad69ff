"""Public benchmarks and published checkpoints by name, as data files. Imports `protocols`, `recipes` and `core`.

Where to look:
    `entries.py`: schema of an entry, and the entries by name.
    `hub.py`: commits and files of the Hugging Face hub; resumed and checked downloads.
    `download.py`: download of a benchmark: files in order, unpacking, table of clips, record.
    `unpack.py`: safe unpacking of zip files, whole or split.
    `adapters.py`: rows of a table of clips from the files of an owner.
    `owner_answers.py`: forms of the answers to prompts of owners, and their parser.
    `owner_prompts.py`: prompts of checkpoints, fetched from the files of their owners.
    `benchmarks/`: one TOML file for each benchmark.
    `models/`: one TOML file for each checkpoint.
"""
