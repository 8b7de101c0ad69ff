"""Connected components of names that are linked in pairs."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


def group_connected_names(
    names: Sequence[str], pairs: Iterable[tuple[str, str]]
) -> list[list[str]]:
    """Group `names` that `pairs` connect, directly or through others; the order of names is kept."""
    place = {name: number for number, name in enumerate(names)}
    ends = np.array([(place[first], place[second]) for first, second in pairs], np.intp)
    rows, columns = ends.reshape(-1, 2).T
    graph = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(len(names),) * 2)
    _, labels = connected_components(graph, directed=False)
    groups: defaultdict[int, list[str]] = defaultdict(list)
    for name, label in zip(names, labels.tolist(), strict=True):
        groups[label].append(name)
    return list(groups.values())
