"""Attacks on playback tokens: forged, changed, and used for what they were not made for."""

import json
import logging
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from api_client import answered, rows
from joserfc import jws
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from playback_links import LIFE, age_keys, kids, links_of, ready_video, token_in
from quart import Quart
from signed_in import program, token_of

from portal.database.account_models import Account
from portal.errors import PlaybackTokenRefused
from portal.videos.playback_tokens import PlaybackToken, encode, header_of
from portal.videos.signing_keys import SigningKeys, rotate

VIDEO_ID, LINK_ID = uuid4(), uuid4()
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
# Nobody has it but the attacker.
OWN_KEY = OctKey.import_key(b"k" * 32)
# That take the same secret as the portal's.
OTHER_HMACS = ("HS384", "HS512")


@pytest.fixture
async def keys(app: Quart) -> SigningKeys:
    """The keys of the app, which knows a retired one, too."""
    await rotate()
    return SigningKeys()


@pytest.fixture
async def token(keys: SigningKeys) -> str:
    """One that opens the video for an hour."""
    return await keys.sign(a_token())


def a_token(life_s: float = 3600, **changes: Any) -> PlaybackToken:
    ends = (datetime.now(UTC) + timedelta(seconds=life_s)).replace(microsecond=0)
    return PlaybackToken(**{"video_id": VIDEO_ID, "expires_at": ends, "link_id": LINK_ID} | changes)


async def is_good(keys: SigningKeys, text: str, video_id: UUID = VIDEO_ID) -> bool:
    """Whether it opens the video."""
    try:
        await keys.verify(text, video_id=video_id)
    except PlaybackTokenRefused:
        return False
    return True


async def good_ones(keys: SigningKeys, texts: list[str]) -> list[str]:
    return [text for text in texts if await is_good(keys, text)]


def base64(data: bytes | str | dict[str, Any]) -> str:
    if isinstance(data, dict):
        data = json.dumps(data, separators=(",", ":"))
    data = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(part: str) -> Any:
    return json.loads(urlsafe_b64decode(f"{part}=="))


def parts(token: str) -> tuple[str, str, str]:
    header, claims, signature = token.split(".")
    return header, claims, signature


async def secret_of(app: Quart, kid: str) -> OctKey:
    """What the database keeps; only the worst of attackers has it."""
    url = app.extensions["portal"].config.database_url
    [(secret,)] = await rows(url, "SELECT secret FROM signing_keys WHERE kid = %s", kid)
    assert len(secret) == 32
    return OctKey.import_key(bytes(secret))


async def test_token_says_what_was_signed_and_no_more(keys: SigningKeys) -> None:
    said = a_token()
    token = await keys.sign(said)
    header, claims, _ = parts(token)
    assert set(decoded(header)) == {"alg", "kid"}
    assert decoded(header)["alg"] == "HS256"
    assert set(decoded(claims)) == {"v", "exp", "l"}
    assert len(token) < 200
    assert await keys.verify(token, video_id=VIDEO_ID) == said
    of_account = a_token(link_id=None, account_id=uuid4())
    found = await keys.verify(await keys.sign(of_account), video_id=VIDEO_ID)
    assert (found.account_id, found.link_id) == (of_account.account_id, None)


async def test_other_algorithms_are_refused_even_with_the_portals_secret(
    app: Quart, keys: SigningKeys, token: str
) -> None:
    """Two by the very secret, eight by keys of the attacker's; each with the portal's key id."""
    header, claims, _ = parts(token)
    kid, payload = decoded(header)["kid"], urlsafe_b64decode(f"{claims}==")
    secret = await secret_of(app, kid)
    rsa, ed, ec = RSAKey.generate_key(2048), OKPKey.generate_key("Ed25519"), ECKey.generate_key()
    own: list[tuple[str, Any]] = [(name, secret) for name in OTHER_HMACS]
    own += [(name, rsa) for name in ("RS256", "RS384", "RS512", "PS256", "PS512")]
    own += [("Ed25519", ed), ("ES256", ec), ("HS256", OWN_KEY)]
    forged = [
        jws.serialize_compact({"alg": name, "kid": kid}, payload, key, algorithms=[name])
        for name, key in own
    ]
    assert len(forged) == 10
    assert await good_ones(keys, forged) == []
    # Alg confusion: a signature that is right for HS256, under the name of another.
    for name in ("HS384", "RS256", "EdDSA", "none"):
        head = base64({"alg": name, "kid": kid})
        signed = jws.serialize_compact({"alg": "HS256", "kid": kid}, payload, secret)
        assert not await is_good(keys, f"{head}.{claims}.{parts(signed)[2]}")


def signature(text: str, key: OctKey) -> str:
    """HS256, whatever the text."""
    algorithm = jws.JWSRegistry.algorithms["HS256"]
    return base64(algorithm.sign(text.encode(), key))


async def test_token_opens_no_other_video(app: Quart, keys: SigningKeys, token: str) -> None:
    """As it is, and with the other video written into it: by itself, and with its signature."""
    other = uuid4()
    assert not await is_good(keys, token, other)
    header, claims, signed = parts(token)
    swapped = base64({**decoded(claims), "v": base64(other.bytes)})
    assert not await is_good(keys, f"{header}.{swapped}.{signed}", other)
    for_other = await keys.sign(a_token(video_id=other))
    assert await is_good(keys, for_other, other)
    mixed = [f"{header}.{claims}.{parts(for_other)[2]}", f"{header}.{parts(for_other)[1]}.{signed}"]
    assert await good_ones(keys, mixed) == []
    for text in mixed:
        assert not await is_good(keys, text, other)


async def test_expired_token_opens_nothing(keys: SigningKeys, token: str) -> None:
    """One of a second ago, one of long ago, and a good one with a later end written into it."""
    for life_s in (0, -1, -3600, -(10**8)):
        assert not await is_good(keys, await keys.sign(a_token(life_s)))
    assert await is_good(keys, await keys.sign(a_token(60)))
    header, claims, signed = parts(await keys.sign(a_token(-1)))
    for end in (10**10, 10**30, 1e308, "9999999999", None, True, [], {}):
        later = base64({**decoded(claims), "exp": end})
        assert not await is_good(keys, f"{header}.{later}.{signed}")


async def test_each_character_counts(keys: SigningKeys, token: str) -> None:
    """Every character changed into each other of the alphabet, left out, and doubled."""
    texts = [
        token[:at] + it + token[at + 1 :]
        for at in range(len(token))
        for it in (*ALPHABET, ".", "=", "+", "/", "\0", " ", "")
        if it != token[at]
    ]
    texts += [token[:at] + token[at] + token[at:] for at in range(len(token))]
    assert len(texts) > 13_000
    assert await good_ones(keys, texts) == []


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "..", "...", "a.b.c", "\0", "\n", "é.é.é", "💥", "\udcff", "٣.٣.٣"),
        *("x" * 100_000, "." * 100_000, "é" * 100_000, "a." * 50_000, "A" * 50_000 + "." * 50_000),
        '{"payload": "e30", "protected": "e30", "signature": "A"}',
    ],
    ids=lambda it: ascii(it[:12]),
)
async def test_what_is_no_token_is_a_refusal_and_no_fault(keys: SigningKeys, text: str) -> None:
    """Seventeen of them, by themselves and in the place of each part."""
    header, claims, signed = parts(await keys.sign(a_token()))
    texts = [text, f"{text}.{claims}.{signed}", f"{header}.{text}.{signed}"]
    assert await good_ones(keys, [*texts, f"{header}.{claims}.{text}"]) == []


async def test_rotated_key_verifies_and_does_not_sign(app: Quart, keys: SigningKeys) -> None:
    config = app.extensions["portal"].config
    old = await keys.sign(a_token())
    new_kid = await rotate()
    await age_keys(config, 60)
    fresh = SigningKeys()
    assert await is_good(fresh, old)
    new = await fresh.sign(a_token())
    assert new.startswith(header_of(new_kid))
    assert not old.startswith(header_of(new_kid))
    # The header of one, the signature of the other.
    begin, end = new.rpartition(".")[0], old.rpartition(".")[2]
    assert not await is_good(fresh, f"{begin}.{end}")


async def test_revoked_key_opens_nothing_any_more(app: Quart, keys: SigningKeys) -> None:
    """Who has the secret of a key that leaked signs with it in vain, under its id and the new."""
    token = await keys.sign(a_token())
    kid = decoded(parts(token)[0])["kid"]
    leaked = await secret_of(app, kid)
    new_kid = await rotate(revoke=True)
    after = SigningKeys()
    forged = [encode(a_token(), kid=it, key=leaked) for it in (kid, new_kid)]
    assert await good_ones(after, [token, *forged]) == []
    assert await is_good(after, await after.sign(a_token()))
    assert await kids(app.extensions["portal"].config) == [new_kid]


async def test_link_of_the_api_is_told_to_nobody_else(
    app: Quart, edith: Account, caplog: pytest.LogCaptureFixture
) -> None:
    """The log of a link that is made, listed and revoked, searched for its token and the secret."""
    video, sender = await ready_video(edith), program(app, await token_of(edith))
    with caplog.at_level(logging.DEBUG):
        link = await answered(await sender.post(links_of(video), json=LIFE), 201)
        await answered(await sender.get(links_of(video)))
        await sender.ask("DELETE", f"{links_of(video)}/{link['id']}")
        await rotate()
    token = token_in(link["playbackUrl"])
    told = "\n".join(f"{it.getMessage()} {it.__dict__}" for it in caplog.records)
    assert links_of(video) in told
    for part in (token, *parts(token)[1:]):
        assert part not in told
    secret = await secret_of(app, decoded(parts(token)[0])["kid"])
    assert secret.as_dict()["k"] not in told
