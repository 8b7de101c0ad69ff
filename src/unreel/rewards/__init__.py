"""Reward of generated clips for trainers of video generators.

Where to look:
    `model.py`: `RewardModel`, from a clip to its reward, and the interface of its answer cache.
    `formula.py`: the formula `reward@1`.
    `result.py`: the reward, its parts and its map.
    `calibration.py`: calibration of the probability of real on a stored run.
    `service/`: the HTTP service.
    `trainers/`: the APIs of UniRL, Flow-Factory and pickle clients.
    `client/`: the one-file client for trainers.
    `guards/`: alarms against reward hacking.
"""
