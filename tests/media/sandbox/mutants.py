"""Honest files with seeded damage."""

import random
from collections.abc import Callable, Iterator

_EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1)
_HEADER_BYTES = 2048


def mutants(original: bytes, *, count: int, seed: int) -> Iterator[bytes]:
    """`count` damaged copies of `original`, each with one to three kinds of damage."""
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(original)
        for damage in chance.choices(_DAMAGES, k=chance.randint(1, 3)):
            damage(data, chance)
        yield bytes(data)


def _flip(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 20)):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _truncate(data: bytearray, chance: random.Random) -> None:
    del data[chance.randint(0, len(data)) :]


def _insert(data: bytearray, chance: random.Random) -> None:
    at = chance.randint(0, len(data))
    data[at:at] = chance.randbytes(chance.randint(1, 64))


def _remove(data: bytearray, chance: random.Random) -> None:
    at = chance.randint(0, len(data))
    del data[at : at + chance.randint(1, 256)]


def _duplicate(data: bytearray, chance: random.Random) -> None:
    start = chance.randint(0, len(data))
    piece = data[start : start + chance.randint(1, 1024)]
    at = chance.randint(0, len(data))
    data[at:at] = piece * chance.randint(1, 4)


def _exaggerate(data: bytearray, chance: random.Random) -> None:
    """Overwrite a field near the start or the end, where containers keep their tables."""
    if len(data) < 16:
        return
    room = min(len(data) - 8, _HEADER_BYTES)
    at = chance.choice([chance.randrange(room), len(data) - 8 - chance.randrange(room)])
    width = chance.choice([1, 2, 4, 8])
    value = chance.choice(_EXTREMES) & (1 << 8 * width) - 1
    data[at : at + width] = value.to_bytes(width, chance.choice(["big", "little"]))


_DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    _flip,
    _truncate,
    _insert,
    _remove,
    _duplicate,
    _exaggerate,
    _exaggerate,
)
