"""Devices that people train on, as their makers' data sheets have them."""

from dataclasses import dataclass
from typing import Final

from unreel.core.errors import UnknownNameError

GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorDevice:
    """Accelerator: dense peak speeds without sparsity, memory, and memory bandwidth."""

    name: str
    bf16_flops: float
    fp32_flops: float
    memory_gib: float
    bytes_per_s: float

    def peak(self, precision: str) -> float:
        """Return the peak operations per second in `bf16` or `fp32`."""
        return self.bf16_flops if precision == "bf16" else self.fp32_flops


# Sources: the makers' data sheets. Memory is what a driver shows, a little below the name's.
DEVICES: Final = {
    device.name: device
    for device in (
        AcceleratorDevice(
            name="h100",
            bf16_flops=989e12,
            fp32_flops=67e12,
            memory_gib=79.6,
            bytes_per_s=3.35e12,
        ),
        AcceleratorDevice(
            name="h200",
            bf16_flops=989e12,
            fp32_flops=67e12,
            memory_gib=140.4,
            bytes_per_s=4.8e12,
        ),
        AcceleratorDevice(
            name="b200",
            bf16_flops=2250e12,
            fp32_flops=75e12,
            memory_gib=179.0,
            bytes_per_s=8.0e12,
        ),
        AcceleratorDevice(
            name="a100",
            bf16_flops=312e12,
            fp32_flops=19.5e12,
            memory_gib=79.3,
            bytes_per_s=2.04e12,
        ),
        AcceleratorDevice(
            name="a100-40",
            bf16_flops=312e12,
            fp32_flops=19.5e12,
            memory_gib=39.4,
            bytes_per_s=1.56e12,
        ),
        AcceleratorDevice(
            name="l40s",
            bf16_flops=362e12,
            fp32_flops=91.6e12,
            memory_gib=44.5,
            bytes_per_s=0.86e12,
        ),
        AcceleratorDevice(
            name="rtx4090",
            bf16_flops=165e12,
            fp32_flops=82.6e12,
            memory_gib=23.5,
            bytes_per_s=1.01e12,
        ),
        AcceleratorDevice(
            name="mi300x",
            bf16_flops=1307e12,
            fp32_flops=163e12,
            memory_gib=191.0,
            bytes_per_s=5.3e12,
        ),
    )
}


def get_device(name: str) -> AcceleratorDevice:
    """Return the device with the given name; letter case is ignored."""
    found = DEVICES.get(name.lower())
    if found is None:
        kind = "device"
        raise UnknownNameError(kind, name, list(DEVICES))
    return found
