"""Names are told apart, however many there are."""

import pytest

from unreel.benchmarks.unique_names import SeenNameSet


def test_a_name_is_new_once_among_few_and_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unreel.benchmarks.unique_names._LATELY", 4)
    names = SeenNameSet()
    told = [f"clip {number}" for number in range(100)]
    assert all(map(names.add, told))
    assert not any(map(names.add, told))
    assert names.add("another")
