"""Secrets that only their holder knows: session cookies, API tokens, one-time links."""

import hashlib
import secrets

SECRET_BYTES = 32
TOKEN_PREFIX = "portal_"  # noqa: S105  # so that scanners find one that was published by mistake
# What a client may send that could be a secret; longer texts are none.
MAX_LENGTH = 100


def new_secret(prefix: str = "") -> str:
    """A secret of 256 random bits, in letters that need no quoting anywhere."""
    return prefix + secrets.token_urlsafe(SECRET_BYTES)


def digest(secret: str) -> str:
    """What is kept of it. It is long and random: a plain hash can't be guessed back."""
    return hashlib.sha256(secret[:MAX_LENGTH].encode("utf-8", "replace")).hexdigest()
