"""XML of strangers, read piece by piece: no document types, no entities, no depth without end."""

from collections.abc import Callable, Iterator, Mapping
from typing import IO, Final, Protocol
from xml.parsers import expat

from unreel.core.errors import InvalidValueError

_CHUNK: Final = 1 << 16
_DEEPEST: Final = 32


class MarkupCallbacks(Protocol):
    """Callbacks of a streaming document parser."""

    def begin(self, path: tuple[str, ...], attributes: Mapping[str, str]) -> None:
        """Handle the start of an element; `path` lists the element names from the root to this element."""
        ...

    def end(self, path: tuple[str, ...], text: str) -> None:
        """Handle the end of an element; `text` is its direct text."""
        ...


def read_markup(file: IO[bytes], listener: MarkupCallbacks, *, most: int, letters: int) -> None:
    """Parse `file` and call `listener` for each element, up to the first error.

    Raises:
        InvalidValueError: It is not XML, declares a document type or entities, is nested too
            deeply, has more than `most` bytes, or an element more than `letters` letters.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    heard = _CallbackAdapter(listener, letters=letters)
    parser.StartElementHandler = heard.begin
    parser.EndElementHandler = heard.end
    parser.CharacterDataHandler = heard.letters
    for name in ("StartDoctypeDeclHandler", "EntityDeclHandler", "ExternalEntityRefHandler"):
        setattr(
            parser,
            name,
            _build_refusing_handler("it declares a document type. Take the declaration out"),
        )
    try:
        for chunk in _iter_bounded_chunks(file, most):
            parser.Parse(chunk, False)  # noqa: FBT003  expat's own signature
        parser.Parse(b"", True)  # noqa: FBT003
    except expat.ExpatError as error:
        msg = (
            f"no XML from line {error.lineno} on: {expat.ErrorString(error.code)}. Export it again"
        )
        raise InvalidValueError(msg) from error
    finally:
        heard.close(parser)


class _CallbackAdapter:
    def __init__(self, listener: MarkupCallbacks, *, letters: int) -> None:
        self._listener = listener
        self._most = letters
        self._path: tuple[str, ...] = ()
        self._texts: list[list[str]] = []
        self._n_letters = 0

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        self._path = (*self._path, name)
        if len(self._path) > _DEEPEST:
            msg = f"nested deeper than {_DEEPEST} elements. Export it again"
            raise InvalidValueError(msg)
        self._texts.append([])
        self._n_letters = 0
        self._listener.begin(self._path, attributes)

    def letters(self, text: str) -> None:
        self._n_letters += len(text)
        if self._n_letters > self._most:
            msg = f"an element of more than {self._most} letters. Export it again"
            raise InvalidValueError(msg)
        self._texts[-1].append(text)

    def end(self, _name: str) -> None:
        self._listener.end(self._path, "".join(self._texts.pop()).strip())
        self._path = self._path[:-1]
        self._n_letters = 0

    def close(self, parser: expat.XMLParserType) -> None:
        """Remove the parser's handlers to break the reference cycle between parser and adapter."""
        parser.StartElementHandler = parser.EndElementHandler = None
        parser.CharacterDataHandler = None


def _build_refusing_handler(problem: str) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise InvalidValueError(problem)

    return refuse


def _iter_bounded_chunks(file: IO[bytes], most: int) -> Iterator[bytes]:
    read = 0
    while chunk := file.read(_CHUNK):
        read += len(chunk)
        if read > most:
            msg = f"larger than {most} bytes. Split it"
            raise InvalidValueError(msg)
        yield chunk
