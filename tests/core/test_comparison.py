"""Reviewers side by side, in words and on a page."""

from unreel.core.comparison import Comparison, Comparisons, Difference
from unreel.core.estimate import Estimate
from unreel.core.question import Instrument

BETTER = Difference(
    metric="accuracy",
    first=0.9,
    second=0.5,
    difference=Estimate(value=0.4, low=0.2, high=0.6, n=50),
    p=0.001,
    p_corrected=0.002,
)
UNTRIED = Difference(
    metric="box-iou", first=None, second=0.2, difference=Estimate(value=0.1, low=0.0, high=0.2, n=9)
)


def _compare(*, n_invalid: int) -> Comparisons:
    comparison = Comparison(
        first="a",
        second="b",
        n_common=50,
        n_sources=25,
        n_invalid=n_invalid,
        n_unshared=0,
        differences=(BETTER, UNTRIED),
    )
    return Comparisons(instrument=Instrument("trace", 1), comparisons=(comparison,), n_tests=1)


def test_a_comparison_tells_what_is_common_what_differs_and_by_which_correction() -> None:
    lines = str(_compare(n_invalid=2)).splitlines()
    assert lines[0] == "trace@1: 1 differences, corrected by Holm"
    assert lines[1] == "a less b: 50 in common, 2 left out"
    assert "p=0.001, corrected 0.002" in lines[2]
    assert "p=" not in lines[3]


def test_it_is_complete_only_where_both_judged_all() -> None:
    assert _compare(n_invalid=0).is_complete
    assert not _compare(n_invalid=1).is_complete


def test_a_notebook_shows_a_row_for_each_difference_and_blanks_for_what_is_not_known() -> None:
    (comparison,) = _compare(n_invalid=0)
    page = _compare(n_invalid=0)._repr_html_()
    assert page.count("accuracy") == 1
    assert comparison.differences[1].first is None
    assert "None" not in page
