"""`unreel arena published` as people type it."""

import json


def test_the_command_shows_both_and_their_difference(run) -> None:
    ran = run("arena", "published", "--json")
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    names = {one["name"]: one for one in told["checks"]}
    assert names["VRT table 2 cells"]["agree"] == 53
    assert names["VRT table 3 cells"]["agree"] == 41
    shown = run("arena", "published")
    assert shown.returncode == 0
    assert "53 of 69" in shown.stdout
