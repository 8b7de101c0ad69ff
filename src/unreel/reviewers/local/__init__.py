"""Checkpoints on this machine, loaded by transformers or served by vLLM.

Where to look:
    `reviewer.py`: the reviewer.
    `encoder.py`: from a question to tensors.
    `checkpoint.py`: model folders, families and the input format of a trained checkpoint.
    `vllm_plan.py`: the plan of `unreel serve`.
    `vllm_server.py`: the vLLM process.
    `loading.py`: loading of a model, with positions as vLLM counts them.
"""
