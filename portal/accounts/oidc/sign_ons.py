"""What is under way between leaving for the provider and coming back: ten minutes, used once.

The browser keeps a secret in a cookie. State, nonce and code verifier are made from it, each by
itself, so that the provider, who is told some of them, can't tell the others, and neither can who
reads the database, which has a digest.
"""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from portal.accounts import rows
from portal.accounts.secrets import digest, new_secret
from portal.database.account_models import MAX_PATH_LENGTH, SignOn
from portal.errors import SignOnUnknown

LIFE_S = 600
# Where the provider sends browsers back to.
CALLBACK = "/sign-in/oidc/callback"


@dataclass(frozen=True, slots=True)
class SignOnSecrets:
    """What a browser's secret stands for in the requests of one sign-in."""

    secret: str

    @property
    def state(self) -> str:
        """Comes back with the answer, and shows that this browser asked for it."""
        return self._derived("state")

    @property
    def nonce(self) -> str:
        """Is part of the ID token, and shows that it was made for this sign-in."""
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        """Redeems the code, together with it (RFC 7636, section 4.1)."""
        return self._derived("verifier")

    def _derived(self, purpose: str) -> str:
        made = hmac.digest(self.secret.encode("utf-8", "replace"), purpose.encode(), hashlib.sha256)
        return urlsafe_b64encode(made).rstrip(b"=").decode()


async def begin(next_path: str) -> SignOnSecrets:
    """Begin a sign-in that goes on at this path of the portal."""
    secret = new_secret()
    await SignOn.create(
        id=uuid4(),
        digest=digest(secret),
        next_path=next_path if len(next_path) <= MAX_PATH_LENGTH else "/",
        expires_at=datetime.now(UTC) + timedelta(seconds=LIFE_S),
    )
    return SignOnSecrets(secret)


async def end(secrets: SignOnSecrets, state: str) -> str:
    """Use a sign-in up; returns the path to go on at.

    Raises `SignOnUnknown` for another browser's state, and for one that was used or is too old.
    Another's state uses nothing up: it could be sent by anyone.
    """
    if not hmac.compare_digest(secrets.state.encode(), state.encode("utf-8", "replace")):
        raise SignOnUnknown
    next_path = await rows.take_sign_on(digest(secrets.secret))
    if next_path is None:
        raise SignOnUnknown
    return next_path
