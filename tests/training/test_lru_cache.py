"""What was shown once is kept, up to a size."""

from unreel.training.sft.lru_cache import (
    LruCache,
    open_clip_input_cache,
    read_cached_value,
    write_cached_value,
)


def test_what_nobody_asked_for_longest_goes_first() -> None:
    gallery = LruCache(30)
    for key in "abc":
        gallery.put(key, b"0123456789")
    assert gallery.get("a") is not None
    gallery.put("d", b"0123456789")
    assert [key for key in "abcd" if gallery.get(key) is not None] == ["a", "c", "d"]


def test_what_fits_nowhere_drives_nothing_out() -> None:
    gallery = LruCache(30)
    gallery.put("a", b"0123456789")
    gallery.put("large", b"0" * 31)
    assert gallery.get("large") is None
    assert gallery.get("a") is not None


def test_a_value_put_again_counts_once() -> None:
    gallery = LruCache(30)
    for _ in range(10):
        gallery.put("a", b"0123456789")
    gallery.put("b", b"0123456789")
    assert gallery.get("a") is not None


def test_a_shared_gallery_gives_values_back() -> None:
    with open_clip_input_cache(1 << 20, shared=True) as gallery:
        assert read_cached_value(gallery, "lesson") is None
        write_cached_value(gallery, "lesson", ("sheet", 7))
        assert read_cached_value(gallery, "lesson") == ("sheet", 7)
