import errno
import pickle

import pytest

from unreel.core.errors import (
    InvalidSettingError,
    InvalidValueError,
    MachineError,
    MediaError,
    MissingExtraError,
    SandboxError,
    UnknownNameError,
    UnreadableSourceError,
    UnreelError,
    UnsafeTargetError,
    convert_to_unreel_error,
    raise_if_machine_error,
)
from unreel.core.failure import Failure, FailureReason
from unreel.core.registry import LazyImport, NamedObjectRegistry
from unreel.core.settings import read_environment_settings

ERRORS = [
    InvalidValueError("no such box"),
    InvalidSettingError("UNREEL_X", "no such setting", "Unset it"),
    UnknownNameError("protocol", "trase", ["realism", "trace"]),
    MissingExtraError("lance", "eval"),
    UnreadableSourceError("list.csv", "no column 'file'", "Name it with --map"),
    UnsafeTargetError("page/media", "is a link, or no folder"),
    MachineError("no room", "Make room"),
    SandboxError("the process that opens media files did not start"),
    MediaError(FailureReason.NO_VIDEO, "audio only"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_trip_between_processes(error: UnreelError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)


@pytest.mark.parametrize("reason", FailureReason)
def test_every_failure_says_what_to_do_next(reason: FailureReason) -> None:
    assert str(Failure(reason, "detail")).startswith(f"{reason.value}: detail. ")
    assert reason.remedy.endswith(".")


def test_an_unknown_name_lists_the_known_ones_and_the_nearest() -> None:
    table = NamedObjectRegistry(
        "protocol", {"trace": LazyImport("json:loads"), "realism": LazyImport("json:dumps")}
    )
    with pytest.raises(UnknownNameError, match="Did you mean 'trace'"):
        table.load("trase")
    with pytest.raises(UnknownNameError, match="Known: realism, trace"):
        table.load("zzz")


@pytest.mark.parametrize("given", [{"UNREEL_MEDIA_SECOND": "3"}, {"UNREEL_MEDIA_MB": "lots"}])
def test_a_setting_that_cannot_be_used_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidSettingError):
        read_environment_settings(given)


def _behind(cause: BaseException) -> Exception:
    """An error that came from another, as libraries wrap them."""
    error = RuntimeError("a step failed")
    error.__cause__ = cause
    return error


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    "error",
    [
        FULL,
        OSError("LanceError(IO): No space left on device (os error 28), /a/writer.rs:254:9"),
        _behind(FULL),
        ExceptionGroup("two", [ValueError("no"), FULL]),
    ],
    ids=["python", "rust", "wrapped", "group"],
)
def test_a_refusal_of_the_machine_is_told_with_what_to_do_however_it_is_wrapped(
    error: Exception,
) -> None:
    with pytest.raises(MachineError, match=r"No space left on device.*\. Make room\. Run the same"):
        raise_if_machine_error(error)
    assert str(convert_to_unreel_error(error)).startswith(("No space", "LanceError", "[Errno 28]"))


def test_an_error_of_one_item_is_no_refusal_and_a_bug_is_not_told() -> None:
    missing = FileNotFoundError(errno.ENOENT, "No such file", "clip.mp4")
    raise_if_machine_error(missing)
    raise_if_machine_error(
        UnreadableSourceError("list.csv", "no column 'file'", "Name it with --map")
    )
    assert "Run the same command again" in str(convert_to_unreel_error(missing))
    assert convert_to_unreel_error(KeyError("bug")) is None
