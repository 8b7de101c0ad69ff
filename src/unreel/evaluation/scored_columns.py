"""Scored questions stored in columns, which take much less memory than one object per question."""

import itertools
from array import array
from binascii import unhexlify
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

from unreel.core.clip import ClipId
from unreel.core.judgement import Pair, build_question_subject, list_subject_clips
from unreel.core.safe_names import read_clip_id
from unreel.protocols.protocol import ScoredQuestion

T = TypeVar("T")
_KINDS = 1 << 16
"""Maximum number of interned values: free texts are all different, so further values are not compared."""
_ONE_TEXT = 2
"""Number of offsets in a column with a single distinct text."""
_ID_BYTES = 32
_SOURCE = "kept rows"
_HEX = 2 * _ID_BYTES


class ScoredQuestionColumns(Sequence[ScoredQuestion[Any, Any]]):
    """Sequence of scored questions that are stored in columns and created on access.

    Args:
        packed: Function that creates the columns of truths and outcomes, used if their texts need
            not be kept: see `Protocol`.
    """

    def __init__(self, packed: Callable[[], tuple[Any, Any]] | None = None) -> None:
        self._subjects = _ClipIdColumn()
        self._sources = InternedTextColumn()
        columns: tuple[Any, Any] = (
            packed() if packed else (InternedValueColumn[Any](), InternedValueColumn[Any]())
        )
        self._truths, self._outcomes = columns
        self._creators = InternedValueColumn[Any]()

    def append(self, row: ScoredQuestion[Any, Any]) -> None:
        """Add `row`, without its `text_score`."""
        self._subjects.append(row.subject)
        self._sources.append(row.source)
        self._truths.append(row.truth)
        self._outcomes.append(row.outcome)
        self._creators.append((row.creator, row.setting, row.difficulty))

    def __len__(self) -> int:
        return len(self._truths.codes)

    def __iter__(self) -> Iterator[ScoredQuestion[Any, Any]]:
        """Yield the scored questions in order, several times faster than by index."""
        rows = zip(
            self._subjects, self._truths, self._outcomes, self._sources, self._creators, strict=True
        )
        for subject, truth, outcome, source, (creator, setting, difficulty) in rows:
            yield ScoredQuestion(
                subject=subject,
                truth=truth,
                outcome=outcome,
                source=source,
                creator=creator,
                setting=setting,
                difficulty=difficulty,
            )

    def subjects(self) -> Iterator[ClipId | Pair]:
        return iter(self._subjects)

    def outcome(self, index: int) -> Any:
        """Return the verdict or failure of the scored question at `index`."""
        return self._outcomes[index]

    def truth_mark(self, index: int) -> Any:
        """Return a comparison key of a ground truth: equal if, and only if, the ground truths are equal."""
        return self._truths.mark(index)

    @overload
    def __getitem__(self, index: int) -> ScoredQuestion[Any, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> list[ScoredQuestion[Any, Any]]: ...

    def __getitem__(
        self, index: int | slice
    ) -> ScoredQuestion[Any, Any] | list[ScoredQuestion[Any, Any]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        creator, setting, difficulty = self._creators[at]
        return ScoredQuestion(
            subject=self._subjects[at],
            truth=self._truths[at],
            outcome=self._outcomes[at],
            source=self._sources[at],
            creator=creator,
            setting=setting,
            difficulty=difficulty,
        )


class InternedValueColumn(Generic[T]):
    """Column of values stored by code; the first 65,536 distinct values are stored once each."""

    def __init__(self) -> None:
        self.codes = array("i")
        self._values: list[T] = []
        self._known: dict[T, int] = {}

    def append(self, value: T) -> None:
        """Add the value of the next row."""
        code = self._known.get(value)
        if code is None:
            code = len(self._values)
            self._values.append(value)
            if code < _KINDS:
                self._known[value] = code
        self.codes.append(code)

    def __getitem__(self, index: int) -> T:
        return self._values[self.codes[index]]

    def __iter__(self) -> Iterator[T]:
        return map(self._values.__getitem__, self.codes)

    def mark(self, index: int) -> T:
        """Return the value at `index`, which serves as its own comparison key."""
        return self[index]


class InternedTextColumn:
    """Column of texts in one buffer; the first 65,536 distinct texts are stored once each."""

    def __init__(self) -> None:
        self._text, self._ends, self._places = bytearray(), array("q", [0]), array("i")
        self._known: dict[str, int] = {}

    def append(self, text: str) -> None:
        """Add the text of the next row."""
        index = self._known.get(text)
        if index is None:
            index = len(self._ends) - 1
            self._text += text.encode(errors="surrogatepass")
            self._ends.append(len(self._text))
            if index < _KINDS:
                self._known[text] = index
        self._places.append(index)

    def __getitem__(self, index: int) -> str:
        at = self._places[index]
        return self._text[self._ends[at] : self._ends[at + 1]].decode(errors="surrogatepass")

    def __iter__(self) -> Iterator[str]:
        if len(self._ends) == _ONE_TEXT:  # the usual case: no row names a scene
            return itertools.repeat(self[0], len(self._places))
        return map(self.__getitem__, range(len(self._places)))


class _ClipIdColumn:
    """Column of clip ids as bytes, with a second id for each row if the rows are pairs."""

    def __init__(self) -> None:
        self._first, self._second = bytearray(), bytearray()
        self._odd: dict[int, ClipId | Pair] = {}
        """Clips or pairs that do not fit the id columns, by row; surveyed clips have none."""

    def append(self, subject: ClipId | Pair) -> None:
        clips = list_subject_clips(subject)
        row = len(self._first) // _ID_BYTES
        ids = [_parse_clip_id(clip) for clip in clips]
        if None in ids or (row and len(clips) - 1 != bool(self._second)):
            self._odd[row] = subject
            ids = [bytes(_ID_BYTES)] * (1 + bool(self._second))
        self._first += ids[0] or b""
        if len(ids) > 1:
            self._second += ids[1] or b""

    def __getitem__(self, index: int) -> ClipId | Pair:
        if index in self._odd:
            return self._odd[index]
        begins, ends = index * _ID_BYTES, (index + 1) * _ID_BYTES
        second = (self._second[begins:ends],) if self._second else ()
        ids = (self._first[begins:ends], *second)
        return build_question_subject(*(read_clip_id(clip.hex(), _SOURCE) for clip in ids))

    def __iter__(self) -> Iterator[ClipId | Pair]:
        if self._odd or self._second:
            return map(self.__getitem__, range(len(self._first) // _ID_BYTES))
        ids = (self._first[at : at + _ID_BYTES] for at in range(0, len(self._first), _ID_BYTES))
        return (read_clip_id(clip.hex(), _SOURCE) for clip in ids)


def _parse_clip_id(clip: ClipId) -> bytes | None:
    """Return the bytes of the clip id; `None` if it is not in the standard format of ids."""
    try:
        packed = unhexlify(clip)
    except ValueError:
        return None
    return packed if len(clip) == _HEX and packed.hex() == clip else None
