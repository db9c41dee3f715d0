"""Which credentials an operation takes, as OpenAPI has it (3.1, sections 4.8.27 and 4.8.30).

It follows from the policy of the operation's route.
"""

from typing import Any

from portal.config import Config
from portal.web.auth import ACTIONS, Policy
from portal.web.cookies import SESSION

TOKEN_SCHEME = "token"  # noqa: S105  # the name of a scheme
SESSION_SCHEME = "session"


def security_schemes(config: Config) -> dict[str, Any]:
    """How a request tells who sent it."""
    return {
        TOKEN_SCHEME: {
            "type": "http",
            "scheme": "bearer",
            "description": "An API token: made on an account's page or by `portal tokens add`.",
        },
        SESSION_SCHEME: {
            "type": "apiKey",
            "in": "cookie",
            "name": SESSION.name(config),
            "description": "A browser in which someone is signed in. What changes something has "
            "to say that it comes from the portal's own pages (Sec-Fetch-Site or Origin).",
        },
    }


def requirements(wanted: Policy | None) -> list[dict[str, list[str]]]:
    """Of what an operation takes one: nothing, a token with the scope, or a session.

    Nothing stands first: a portal without accounts takes everything without credentials. The list
    is empty where credentials are not looked at. Raises `KeyError` for a policy of pages.
    """
    if wanted is Policy.ANYONE or wanted is None:
        return []
    return [{}, {TOKEN_SCHEME: [ACTIONS[wanted].scope.value]}, {SESSION_SCHEME: []}]
