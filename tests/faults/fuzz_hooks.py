"""Loaded by schemathesis (see fuzz.toml): what a document of an API cannot say.

Sends a file to each address that was asked for, as a client does; without it no video would come
about, and nothing that needs one would be reached. And checks that what was created lives until
it is deleted: schemathesis' own check knows of DELETE alone.
"""

import requests
import schemathesis
from schemathesis import Case, CheckContext, HookContext, Response

FILE = b"the raw bytes of a video"
CREATIONS = {"POST /api/videos": "id", "POST /api/uploads": "uploadId"}
DELETIONS = {"POST /api/videos/{id}/deletion": 202, "DELETE /api/uploads/{id}": 204}
created: set[str] = set()
deleted: set[str] = set()


@schemathesis.hook
def after_call(context: HookContext, case: Case, response: Response) -> None:
    """Upload the file that an address was given for."""
    if _call(case) != "POST /api/videos/presign" or response.status_code != 200:
        return
    headers = {"Content-Type": case.body["contentType"]}
    stored = requests.put(response.json()["uploadUrl"], data=FILE, headers=headers, timeout=60)
    stored.raise_for_status()


@schemathesis.check
def what_was_created_lives_until_deleted(ctx: CheckContext, response: Response, case: Case) -> None:
    """And is not answered any more from then on."""
    member = CREATIONS.get(_call(case))
    if member and response.status_code == 201:
        created.add(response.json()[member])
    wanted = str(case.path_parameters.get("id"))
    if wanted in deleted:
        assert response.status_code >= 400, "something deleted was answered"
    elif wanted in created and case.method == "GET":
        assert response.status_code != 404, "something created was lost"
    if DELETIONS.get(_call(case)) == response.status_code:
        deleted.add(wanted)


def _call(case: Case) -> str:
    return f"{case.method} {case.path}"
