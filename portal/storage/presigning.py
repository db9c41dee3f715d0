"""Presigned addresses: AWS Signature Version 4 in the query string, made by botocore's signer.

The client's own `generate_presigned_url` works out the endpoint anew for each address and takes
several times as long; a long playlist has thousands. Here it is asked once for the bucket's
address, and only the signing is done for each key.

An address is good for no longer than the credentials that signed it. Those of a role last for
minutes to hours; botocore fetches new ones in time. It knows when they end, unless a session token
comes alone (`AWS_SESSION_TOKEN` without `AWS_CREDENTIAL_EXPIRATION`).
"""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials, RefreshableCredentials
from botocore.exceptions import NoCredentialsError

from portal.errors import StorageDenied
from portal.storage.calls import translated_errors
from portal.text import shown


class Presigner:
    """Signs addresses of one bucket as seen through one client. Keys need no URL quoting."""

    def __init__(self, session: Any, client: Any, bucket: str) -> None:
        self._session = session
        self._client = client
        self._bucket = bucket
        self._base = ""

    async def presign_put(self, key: str, *, content_type: str, ttl_s: int) -> str:
        """Address to PUT this key to, with exactly this Content-Type."""
        sign = await self._signer(ttl_s)
        return sign("PUT", key, {"Content-Type": content_type})

    async def presign_part(
        self, key: str, multipart_id: str, number: int, *, size_bytes: int, ttl_s: int
    ) -> str:
        """Address to PUT one part of a multipart upload to.

        The size is part of the signature, so storage refuses a body of any other; browsers send
        Content-Length by themselves.
        """
        sign = await self._signer(ttl_s)
        query = urlencode({"partNumber": number, "uploadId": multipart_id})
        return sign("PUT", f"{key}?{query}", {"Content-Length": str(size_bytes)})

    async def presign_get(
        self, key: str, *, ttl_s: int, headers: Mapping[str, str] | None = None
    ) -> str:
        """Return the address of one object, answered with these headers instead of its own."""
        return (await self.presign_get_many([key], ttl_s=ttl_s, headers=headers))[key]

    async def presign_source(self, key: str, *, ttl_s: int) -> str:
        """As `presign_get`, of an uploaded file: nobody inflates it.

        An uploader may have sent `Content-Encoding`, which isn't signed and which storage keeps;
        ffmpeg inflates what says that it is compressed, and has no option against that.
        """
        return await self.presign_get(key, ttl_s=ttl_s, headers={"content-encoding": "identity"})

    async def presign_download(self, key: str, *, file_name: str, ttl_s: int) -> str:
        """As `presign_source`; a browser saves the file under this name (RFC 6266).

        These headers replace those that the uploader sent. No shared cache keeps the file.
        """
        headers = {
            "cache-control": f"private, max-age={ttl_s}",
            "content-disposition": _attachment(file_name),
            "content-encoding": "identity",
        }
        return await self.presign_get(key, ttl_s=ttl_s, headers=headers)

    async def presign_get_many(
        self, keys: Collection[str], *, ttl_s: int, headers: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Return the addresses of many objects, by key, as `presign_get`; off the event loop."""
        overrides = {f"response-{name}": value for name, value in (headers or {}).items()}
        query = f"?{urlencode(overrides, quote_via=quote)}" if overrides else ""
        sign = await self._signer(ttl_s)
        return await asyncio.to_thread(lambda: {key: sign("GET", key + query, {}) for key in keys})

    async def address_life_s(self, ttl_s: int) -> int:
        """For how long an address signed now is good: `ttl_s`, or until its credentials end.

        Whoever lets others keep such addresses does so for less than this.
        """
        return (await self._credentials(ttl_s))[1]

    async def origin(self) -> str:
        """Scheme and host of what is signed."""
        parts = urlsplit(await self._bucket_url())
        return f"{parts.scheme}://{parts.netloc}"

    async def _bucket_url(self) -> str:
        """Address of the bucket, with a slash at the end."""
        if not self._base:
            parameters = {"Bucket": self._bucket, "Key": "-"}
            with translated_errors(self._bucket):
                address = await self._client.generate_presigned_url("get_object", Params=parameters)
            self._base = address.partition("?")[0].removesuffix("-")
        return self._base

    async def _signer(self, ttl_s: int) -> Callable[[str, str, dict[str, str]], str]:
        credentials, life_s = await self._credentials(ttl_s)
        base = await self._bucket_url()
        auth = S3SigV4QueryAuth(credentials, "s3", self._client.meta.region_name, expires=life_s)

        def sign(method: str, key: str, headers: dict[str, str]) -> str:
            request = AWSRequest(method, base + key, headers=headers)
            auth.add_auth(request)
            address: str = request.url
            return address

        return sign

    async def _credentials(self, ttl_s: int) -> tuple[ReadOnlyCredentials, int]:
        """Credentials, fresh ones if need be, and the life of what they sign."""
        with translated_errors(self._bucket):
            credentials = await self._session.get_credentials()
            if credentials is None:
                raise NoCredentialsError
            try:
                frozen = await credentials.get_frozen_credentials()
            except RuntimeError as exc:
                # Refreshed, and expired all the same.
                raise StorageDenied("ExpiredToken") from exc
        if not isinstance(credentials, RefreshableCredentials):
            return frozen, ttl_s
        return frozen, max(1, _seconds_left(credentials, ttl_s))


def _seconds_left(credentials: RefreshableCredentials, most_s: int) -> int:
    """Whole seconds until these expire. Only whether a time is left can be asked publicly."""
    seconds = range(1, most_s + 1)
    return bisect_left(seconds, True, key=lambda it: credentials.refresh_needed(refresh_in=it))


def _attachment(file_name: str) -> str:
    """A Content-Disposition with the name in full, and in ASCII for what can't read that."""
    file_name = shown(file_name)
    plain = "".join(it if " " <= it <= "~" and it not in '"\\%' else "_" for it in file_name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(file_name, safe='')}"
