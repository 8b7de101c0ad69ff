"""A room differs from what was pushed where an annotator would see something else."""

from typing import Any

from unreel.annotation.studio.projects import (
    ProjectDifferences,
    PushedProjectState,
    build_pushed_project_state,
    is_same_task_data,
)

DATA = {"unreel_task": "t1", "video": "/data/local-files/?d=clips/a.mp4", "fps": "24"}
CONFIG = "<View/>"


def _state() -> PushedProjectState:
    state = PushedProjectState(settings={"label_config": f"{CONFIG}\n"}, tasks={"t1": DATA})
    state.numbers["7"] = "t1"
    return state


def _task(number: int, data: Any = DATA, **more: Any) -> dict[str, Any]:
    return {"id": number, "data": data, "predictions": [], **more}


def test_a_room_as_pushed_is_not_altered() -> None:
    look = ProjectDifferences(_state())
    look.see_project({"label_config": CONFIG, "task_number": 1, "model_version": None})
    look.see_task(_task(7))
    assert not look.is_altered
    assert look.reason("7") == ""


def test_changed_added_and_deleted_tasks_are_told_apart() -> None:
    look = ProjectDifferences(_state())
    look.see_task(_task(8, DATA | {"video": "other"}))
    assert (look.added, look.missing, look.reason("8")) == (
        ["8"],
        ["7"],
        "this task was not pushed",
    )
    look = ProjectDifferences(_state())
    look.see_task(_task(7, DATA | {"unreel_task": "t2"}))
    assert (look.added, look.missing, look.reason("7")) == ([], [], "the data was changed")
    look = ProjectDifferences(_state())
    look.see_task(_task(7, predictions=[{"id": 1, "result": []}]))
    assert look.reason("7") == "the marks were changed"


def test_a_changed_setting_holds_for_all_tasks() -> None:
    look = ProjectDifferences(_state())
    look.see_project({"label_config": "<View><Header/></View>", "show_skip_button": True})
    assert look.settings == ("label_config", "show_skip_button")
    assert "label_config" in look.reason("7")


def test_a_room_of_an_earlier_release_is_taken_as_it_is() -> None:
    project = {"label_config": "<View>changed</View>"}
    state = build_pushed_project_state(project, [_task(7)])
    assert state.changed_settings(project) == ()
    assert state.find_change(_task(7)) == ""
    assert state.find_change(_task(7, DATA | {"fps": "5"})) == "the data was changed"


def test_a_link_that_a_store_signed_anew_is_the_same_link() -> None:
    one, other = (
        {"video": f"https://store/b/a.mp4?X-Amz-Date={n}&X-Amz-Signature={n}"} for n in (1, 2)
    )
    assert is_same_task_data(one, other)
    assert not is_same_task_data(one, {"video": other["video"].replace("a.mp4", "b.mp4")})
    assert not is_same_task_data(DATA, DATA | {"video": "/data/local-files/?d=clips/b.mp4"})
