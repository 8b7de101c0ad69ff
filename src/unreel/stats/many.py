"""Many tests at once: a difference found by looking often enough is none."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Each p-value as it counts among all, in their order (Holm 1979).

    Calling different what stays at or below 0.05 is wrong even once in at most 5 of 100 such families,
    however the tests depend on each other.
    """
    n = len(p_values)
    counted = [1.0] * n
    so_far = 0.0
    for rank, place in enumerate(sorted(range(n), key=lambda i: p_values[i])):
        so_far = max(so_far, min(1.0, (n - rank) * p_values[place]))
        counted[place] = so_far
    return tuple(counted)
