"""What was shown once is kept, up to a size."""

from unreel.train.shelf import Shelf, keep, open_shelf, recall


def test_what_nobody_asked_for_longest_goes_first() -> None:
    shelf = Shelf(30)
    for key in "abc":
        shelf.put(key, b"0123456789")
    assert shelf.get("a") is not None
    shelf.put("d", b"0123456789")
    assert [key for key in "abcd" if shelf.get(key) is not None] == ["a", "c", "d"]


def test_what_fits_nowhere_drives_nothing_out() -> None:
    shelf = Shelf(30)
    shelf.put("a", b"0123456789")
    shelf.put("large", b"0" * 31)
    assert shelf.get("large") is None
    assert shelf.get("a") is not None


def test_a_value_put_again_counts_once() -> None:
    shelf = Shelf(30)
    for _ in range(10):
        shelf.put("a", b"0123456789")
    shelf.put("b", b"0123456789")
    assert shelf.get("a") is not None


def test_a_shared_shelf_gives_values_back() -> None:
    with open_shelf(1 << 20, shared=True) as shelf:
        assert recall(shelf, "lesson") is None
        keep(shelf, "lesson", ("sheet", 7))
        assert recall(shelf, "lesson") == ("sheet", 7)
