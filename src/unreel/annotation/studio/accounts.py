"""Creation of Label Studio accounts for annotators, with the sign-up form and generated passwords.

Label Studio's call for new users creates an account without an organisation, so the sign-up form is
used. A password is stored before its account is created: a kill between the two loses no login.
"""

import json
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2

from unreel.annotation.campaign import Annotator
from unreel.annotation.studio.client import DEADLINE_S, LabelStudioClient
from unreel.core.errors import MachineError
from unreel.core.output_files import OutputDirectory
from unreel.network.http_client import open_blocking_http_client

_KEPT: Final = "accounts.json"
_SIGN_UP: Final = "/user/signup/"
_FORM_PAGE: Final = range(200, 300)
_DONE: Final = range(300, 400)


def create_annotator_accounts(
    client: LabelStudioClient, annotators: Iterable[Annotator], *, folder: Path
) -> dict[str, int]:
    """Create the missing Label Studio accounts; return the account ids by the annotators' names.

    Args:
        client: Label Studio.
        annotators: Annotators who need an account.
        folder: State folder in which generated passwords are stored.

    Raises:
        MachineError: The server rejects an account.
    """
    ids, numbers = _read_account_ids(client), {}
    for annotator in annotators:
        login = annotator.email.lower()
        if login not in ids:
            _sign_up_account(client, login, password=_get_or_create_password(folder, login))
            ids = _read_account_ids(client)
        if login not in ids:
            problem = f"Label Studio made no account for {annotator.email}"
            raise MachineError(problem, "Give an address that it takes, such as name@example.org")
        numbers[annotator.name] = ids[login]
    return numbers


def read_account_passwords(folder: Path) -> Mapping[str, str]:
    """Return by login the passwords of the Label Studio accounts that unreel created."""
    try:
        with OutputDirectory(folder).read(_KEPT) as file:
            document = json.loads(file.read(1 << 22))
    except (FileNotFoundError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _get_or_create_password(folder: Path, login: str) -> str:
    passwords = dict(read_account_passwords(folder))
    if login not in passwords:
        passwords[login] = secrets.token_urlsafe(12)
        OutputDirectory(folder).write(_KEPT, json.dumps(passwords, indent=2).encode())
    return passwords[login]


def _read_account_ids(client: LabelStudioClient) -> dict[str, int]:
    """Return the ids of all Label Studio accounts of the organisation, by lower-case login."""
    listed: Any = client.get("/api/users/")
    return {
        str(user["email"]).lower(): int(user["id"])
        for user in listed
        if isinstance(user, dict) and "email" in user and "id" in user
    }


def _sign_up_account(client: LabelStudioClient, login: str, *, password: str) -> None:
    link = str(client.get("/api/invite").get("invite_url", ""))
    token = parse_qs(urlsplit(link).query).get("token", [""])[0]
    with open_blocking_http_client(
        client.server, base_url=client.address, timeout_s=DEADLINE_S, keeps_cookies=True
    ) as browser:
        try:
            page = browser.get(_SIGN_UP, params={"token": token})
            fields = {"email": login, "password": password, "allow_newsletters": "false"}
            fields["csrfmiddlewaretoken"] = browser.cookies.get("csrftoken") or ""
            origin = {"Referer": f"{client.address}{_SIGN_UP}"}
            reply = browser.post(_SIGN_UP, params={"token": token}, data=fields, headers=origin)
        except httpx2.HTTPError as error:
            problem = f"the account of {login} was not made ({type(error).__name__})"
            raise MachineError(problem, "Run the same command again") from None
    if page.status_code in _FORM_PAGE and reply.status_code in {*_DONE, *_FORM_PAGE}:
        return  # if it was the form again, the caller finds that the account is missing
    problem = f"Label Studio answers {reply.status_code} to the sign-up of {login}"
    raise MachineError(problem, "Make the account there by its invite link, then run this again")
