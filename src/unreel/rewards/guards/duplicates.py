"""Near-duplicate clips within a step, by the frame hashes of their fingerprints."""

import base64
import binascii
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unreel.media.fingerprint import HASH_WORDS
from unreel.media.messages import N_PICKED
from unreel.media.near_duplicates import MOST_BITS


def count_duplicates(fingerprints: Sequence[str]) -> int:
    """Return how many clips repeat an earlier clip: their median frame differs by `MOST_BITS` of 256 at most."""
    words = [own for each in fingerprints if (own := _decode_fingerprint(each)) is not None]
    if not words:
        return 0
    hashes = np.stack(words)
    n_repeats = 0
    for index in range(1, len(hashes)):
        earlier = hashes[:index]
        apart = np.bitwise_count(earlier ^ hashes[index]).sum(axis=-1, dtype=np.uint16)
        n_repeats += bool((np.median(apart, axis=-1) <= MOST_BITS).any())
    return n_repeats


def _decode_fingerprint(text: str) -> NDArray[np.uint64] | None:
    try:
        data = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return None
    if len(data) != N_PICKED * HASH_WORDS * 8:
        return None
    return np.frombuffer(data, "<u8").reshape(N_PICKED, HASH_WORDS)
