"""Load, memory, and attackers beside other callers; `benchmarks/reward_load.py` has the same with options."""

from collections import Counter
from pathlib import Path

import pytest

from reward_load import measure_attack, measure_memory, measure_rates


def require_rates(folder: Path, *, rounds: int, seconds: float, least: float) -> None:
    results = measure_rates(folder, rounds=rounds, seconds=seconds, clients=64, size=2_000_000)
    rates = {name: [round(each.rate, 1) for each in loads] for name, loads in results.items()}
    print(f"requests/s: {rates}")
    assert not sum((each.errors for loads in results.values() for each in loads), Counter())
    assert sum(rates["repeated"]) >= least * sum(rates["bare"])


@pytest.mark.alone
def test_load_is_near_a_bare_endpoint(tmp_path: Path) -> None:
    require_rates(tmp_path, rounds=1, seconds=2, least=0.5)


@pytest.mark.slow
@pytest.mark.alone
def test_load_reaches_most_of_a_bare_endpoint(tmp_path: Path) -> None:
    require_rates(tmp_path, rounds=4, seconds=8, least=0.7)


@pytest.mark.alone
@pytest.mark.parametrize(
    "minutes", [0.05, pytest.param(30, marks=[pytest.mark.slow, pytest.mark.timeout(2400)])]
)
def test_memory_is_flat(tmp_path: Path, minutes: float) -> None:
    sizes, n_clips = measure_memory(tmp_path, minutes=minutes)
    print(f"resident MB: {sizes}; {n_clips} clips")
    assert sizes[-1] < sizes[4] * 1.1 + 10


@pytest.mark.alone
@pytest.mark.parametrize("seconds", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_attackers_do_not_slow_other_callers(tmp_path: Path, seconds: float) -> None:
    """The p99 of others stays within 3x; each attack is refused."""
    calm, attacked, replies = measure_attack(tmp_path, seconds=seconds)
    print(f"p99 {calm.p99_ms:.1f} ms, under attack {attacked.p99_ms:.1f} ms; {dict(replies)}")
    assert not calm.errors + attacked.errors
    assert {*replies} == {"10 GB 413", "wrong token 401", "pickle 422"}
    assert attacked.p99_ms < 3 * calm.p99_ms
