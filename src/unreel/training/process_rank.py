"""Rank of this process in a training, and its visible devices."""

from dataclasses import dataclass

import torch
from accelerate import PartialState


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingProcess:
    """One of the processes that share a training; most trainings have one."""

    n: int
    """How many there are, on all machines."""
    is_first: bool
    """Whether it is the process that reads, writes and reports."""
    n_devices: int
    """Of this machine; 0 where only its processors can compute."""


def read_process_rank() -> TrainingProcess:
    """Return the rank of this process, as set by its launcher."""
    n_devices = torch.cuda.device_count()
    state = PartialState(cpu=n_devices == 0)
    return TrainingProcess(
        n=state.num_processes, is_first=state.is_main_process, n_devices=n_devices
    )
