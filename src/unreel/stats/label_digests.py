"""Numbers of distinct labels by 16-byte digests, for tables with many rows."""

from hashlib import blake2b

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int32]
DIGEST_BYTES = 16


class LabelDigestList:
    """Digests of distinct labels in the order of their first occurrence."""

    def __init__(self) -> None:
        self._digests = bytearray()

    def __len__(self) -> int:
        return len(self._digests) // DIGEST_BYTES

    def number(self, digests: bytearray) -> Numbers:
        """Return the number of each label of the concatenated `digests`; new labels are added."""
        n_known = len(self)
        rank = rank_digests(self._digests + digests)
        n_labels = int(rank.max(initial=-1)) + 1
        first = np.full(n_labels, len(rank), np.int32)
        np.minimum.at(first, rank, np.arange(len(rank), dtype=np.int32))
        order = np.argsort(first)
        new = first[order[n_known:]] - n_known
        self._digests += np.frombuffer(digests, f"V{DIGEST_BYTES}")[new].tobytes()
        number = np.empty(n_labels, np.int32)
        number[order] = np.arange(n_labels, dtype=np.int32)
        return number[rank[n_known:]]


def digest_label(label: str) -> bytes:
    """Return the 16-byte BLAKE2b digest of `label`."""
    return blake2b(str(label).encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).digest()


def rank_digests(digests: bytearray) -> Numbers:
    """Return the rank of each of the concatenated digests among the distinct ones."""
    halves = np.frombuffer(digests, np.uint64).reshape(-1, 2)
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    differs = np.zeros(len(order), np.bool_)
    for column in halves.T:
        in_order = column[order]
        differs[1:] |= in_order[1:] != in_order[:-1]
    numbers = np.empty(len(order), np.int32)
    numbers[order] = np.cumsum(differs, dtype=np.int32)
    return numbers
