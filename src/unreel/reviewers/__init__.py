"""Reviewers behind one interface, and clients for model servers. May import `protocols`, `media`, `stats`, `core`.

Where to look:
    `contract.py`: the interface of a reviewer.
    `config.py`: the `[reviewer]` section of a recipe.
    `registry.py`: reviewers by name.
    `clip_inputs.py`: inputs of a reviewer, loaded from clips.
    `message_parts.py`: order of texts and frames in a prompt.
    `endpoint/`: models behind an OpenAI-compatible server.
    `local/`: checkpoints on this machine, and vLLM.
    `external/`: programs and HTTP services that score clips.
    `baselines/`: baselines that a model must beat.
    `recorded.py`: stored answers, replayed.
"""
