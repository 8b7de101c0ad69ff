"""Request format of pickled dicts: verl-omni's HTTP scorer and the remote rewards of Flow-GRPO.

A request is a pickled dict with picture files as `images`, and `prompts`. It is read without running
code: only listed operations and globals are permitted, and NumPy's constructors are replaced by
records. The reply is a pickled dict with the rewards as `scores` and `outputs`, or with an `error`.
"""

import asyncio
import io
import ipaddress
import pickle
import pickletools
import re
from typing import Any

from fastapi import APIRouter, Request, Response

from unreel.core.errors import InvalidValueError
from unreel.rewards.service.scoring import RewardService
from unreel.rewards.trainers.pictures import PictureListScorer
from unreel.webapp.refusals import RequestRefusedError

GLOBALS = frozenset(
    {
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
    }
)
OPERATIONS = frozenset(
    [
        *("PROTO", "FRAME", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "BINFLOAT", "LONG1"),
        *("BININT", "BININT1", "BININT2", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
        *("SHORT_BINUNICODE", "BINUNICODE", "EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_DICT"),
        *("SETITEM", "SETITEMS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
        *("MEMOIZE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET"),
        *("GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD"),
    ]
)
_INVALID = 422
_MAX_OPERATIONS = 4096
_STILL_FPS = 1.0
_UNICODE = re.compile("U[1-9][0-9]{0,5}")
_CHARACTER_BYTES = 4


class PickledArrayRecord:
    """Arguments and state of a pickled NumPy array or dtype, as plain data instead of a NumPy object."""

    __slots__ = ("arguments", "name", "state")
    state: Any

    def __init__(self, name: str, arguments: tuple[Any, ...]) -> None:
        self.name, self.arguments, self.state = name, arguments, None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class PickledGlobalRecord:
    """Harmless replacement for a permitted global of a pickle; a call returns a `PickledArrayRecord`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any) -> PickledArrayRecord:
        return PickledArrayRecord(self.name, arguments)

    def __setstate__(self, _state: Any) -> None:
        raise pickle.UnpicklingError("the state of a global cannot be set")


class RestrictedUnpickler(pickle.Unpickler):
    """Unpickler that permits only the globals in `GLOBALS`, and replaces them by records."""

    def find_class(self, module: str, name: str, /) -> PickledGlobalRecord:
        if (module, name) not in GLOBALS:
            raise pickle.UnpicklingError(f"the global {module}.{name} is not permitted")
        return PickledGlobalRecord(name)


def read_restricted_pickle(data: bytes) -> Any:
    """Read a pickle of plain values and NumPy arrays without running code; arrays become records.

    Raises:
        InvalidValueError: The pickle has another operation or global, or is damaged.
    """
    try:
        for number, (operation, argument, _) in enumerate(pickletools.genops(data)):
            # A large memo index takes as much memory as all indices below it.
            is_large = operation.name == "LONG_BINPUT" and int(argument or 0) > _MAX_OPERATIONS
            if operation.name not in OPERATIONS or is_large or number > _MAX_OPERATIONS:
                raise pickle.UnpicklingError(f"the operation {operation.name} is not permitted")
        return RestrictedUnpickler(io.BytesIO(data)).load()
    except Exception as error:  # noqa: BLE001  a damaged pickle raises errors of many kinds
        raise InvalidValueError(
            f"the pickle is refused ({error}). Send lists of bytes and text with protocol 4"
        ) from None


def parse_pickled_request(data: bytes) -> tuple[list[bytes], list[str | None]]:
    """Return the picture files and prompts of a pickled request.

    Without prompts, each picture gets `None`.

    Raises:
        InvalidValueError: `images` is not a list of bytes, or `prompts` is not a list of text.
    """
    payload = read_restricted_pickle(data)
    images = payload.get("images") if isinstance(payload, dict) else None
    if not isinstance(images, list) or not all(isinstance(each, bytes) for each in images):
        raise InvalidValueError(
            "`images` is not a list of bytes. Send a dict with picture files as `images`"
        )
    prompts = payload.get("prompts", [None] * len(images))
    if isinstance(prompts, PickledArrayRecord):
        prompts = _parse_text_array(prompts)
    if not isinstance(prompts, list) or not all(isinstance(each, str | None) for each in prompts):
        raise InvalidValueError(
            "`prompts` is not a list of text. Send a list, or a NumPy array of text"
        )
    return images, prompts


def _parse_text_array(record: PickledArrayRecord) -> list[str] | None:
    """Return the texts in the record of an array; `None` for other arrays than one-dimensional ones of text."""
    match record.state:
        case (
            _,
            (int() as length,),
            PickledArrayRecord(
                name="dtype", arguments=(str() as kind, *_), state=(_, "<" | ">" as order, *_)
            ),
            bool(),
            bytes() as content,
        ) if _UNICODE.fullmatch(kind) and length * int(kind[1:]) * _CHARACTER_BYTES == len(content):
            pass
        case _:
            return None
    try:
        text = content.decode("utf-32-le" if order == "<" else "utf-32-be")
    except UnicodeDecodeError:
        return None
    width = int(kind[1:])
    return [text[start : start + width].rstrip("\0") for start in range(0, len(text), width)]


def build_pickle_router(service: RewardService, *, local_only: bool = True) -> APIRouter:
    """Return the router for pickled requests, by default only from clients on this machine."""
    router = APIRouter(tags=["pickle"])
    scorer = PictureListScorer(service)

    @router.post("/pickle", response_class=Response)
    async def score(request: Request) -> Response:
        try:
            if local_only:
                _require_loopback_client(request)
            images, prompts = await asyncio.to_thread(parse_pickled_request, await request.body())
            rewards = await scorer.score([[each] for each in images], prompts, _STILL_FPS, request)
        except RequestRefusedError as error:
            return _encode_reply({"error": str(error)}, error.status, error.headers)
        except InvalidValueError as error:
            return _encode_reply({"error": str(error)}, _INVALID)
        return _encode_reply({"scores": rewards, "outputs": rewards})

    return router


def build_remote_pickle_router(service: RewardService) -> APIRouter:
    """Return the router for pickled requests from all clients."""
    return build_pickle_router(service, local_only=False)


def _require_loopback_client(request: Request) -> None:
    host = request.client.host if request.client else ""
    try:
        is_local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        raise RequestRefusedError(
            403,
            "not-local",
            "pickles are accepted from this machine only. Name the dialect pickle-remote",
        )


def _encode_reply(
    content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    kind = "application/octet-stream"
    return Response(pickle.dumps(content, protocol=4), status, headers, media_type=kind)
