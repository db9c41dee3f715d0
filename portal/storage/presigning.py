"""Presigned addresses: AWS Signature Version 4 in the query string, made by botocore's signer.

The client's `generate_presigned_url` resolves the endpoint for each address and takes several times
as long; a long playlist has thousands. Here it is called once, for the bucket's address, and each
key is signed without it.

An address expires no later than the credentials that signed it. Credentials of a role last for
minutes to hours; botocore fetches new ones in time. Their end is unknown if the environment has
`AWS_SESSION_TOKEN` without `AWS_CREDENTIAL_EXPIRATION`.
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
from portal.text import saved_name


class Presigner:
    """Signer of addresses in one bucket, for one endpoint. Keys need no URL quoting."""

    def __init__(self, session: Any, client: Any, bucket: str) -> None:
        self._session = session
        self._client = client
        self._bucket = bucket
        self._base = ""

    async def presign_put(self, key: str, *, content_type: str, ttl_s: int) -> str:
        """Return an address for a PUT of this key, with exactly this Content-Type."""
        sign = await self._signer(ttl_s)
        return sign("PUT", key, {"Content-Type": content_type})

    async def presign_part(
        self, key: str, multipart_id: str, number: int, *, size_bytes: int, ttl_s: int
    ) -> str:
        """Return an address for a PUT of one part of a multipart upload.

        The size is part of the signature, so storage refuses bodies of other sizes. Browsers send
        Content-Length by themselves.
        """
        sign = await self._signer(ttl_s)
        query = urlencode({"partNumber": number, "uploadId": multipart_id})
        return sign("PUT", f"{key}?{query}", {"Content-Length": str(size_bytes)})

    async def presign_get(
        self, key: str, *, ttl_s: int, headers: Mapping[str, str] | None = None
    ) -> str:
        """Return the address of one object, whose response gets these headers."""
        return (await self.presign_get_many([key], ttl_s=ttl_s, headers=headers))[key]

    async def presign_source(self, key: str, *, ttl_s: int) -> str:
        """Return the address of an uploaded file, which readers won't decompress.

        Storage keeps a `Content-Encoding` that the uploader sent, since that header isn't signed.
        ffmpeg would decompress such a file, and has no option against it.
        """
        return await self.presign_get(key, ttl_s=ttl_s, headers={"content-encoding": "identity"})

    async def presign_download(self, key: str, *, file_name: str, ttl_s: int) -> str:
        """Return the address from which a browser saves an uploaded file by this name (RFC 6266).

        The headers replace those that the uploader sent, and keep shared caches from storing the
        file.
        """
        headers = {
            "cache-control": f"private, max-age={ttl_s}",
            "content-disposition": attachment(file_name),
            "content-encoding": "identity",
        }
        return await self.presign_get(key, ttl_s=ttl_s, headers=headers)

    async def presign_get_many(
        self, keys: Collection[str], *, ttl_s: int, headers: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Return the addresses of many objects by key, signed in a thread (see `presign_get`)."""
        overrides = {f"response-{name}": value for name, value in (headers or {}).items()}
        query = f"?{urlencode(overrides, quote_via=quote)}" if overrides else ""
        sign = await self._signer(ttl_s)
        return await asyncio.to_thread(lambda: {key: sign("GET", key + query, {}) for key in keys})

    async def address_life_s(self, ttl_s: int) -> int:
        """Return the lifetime of an address signed now: `ttl_s`, or less if credentials expire.

        Caches must keep such addresses for less than this.
        """
        return (await self._credentials(ttl_s))[1]

    async def origin(self) -> str:
        """Return the scheme and host of signed addresses."""
        parts = urlsplit(await self._bucket_url())
        return f"{parts.scheme}://{parts.netloc}"

    async def _bucket_url(self) -> str:
        """Return the address of the bucket, with a slash at the end."""
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
        """Return credentials, refreshed if necessary, and the lifetime of their addresses."""
        with translated_errors(self._bucket):
            credentials = await self._session.get_credentials()
            if credentials is None:
                raise NoCredentialsError
            try:
                frozen = await credentials.get_frozen_credentials()
            except RuntimeError as exc:
                # botocore refreshed the credentials, and they are expired nevertheless.
                raise StorageDenied from exc
        if not isinstance(credentials, RefreshableCredentials):
            return frozen, ttl_s
        return frozen, max(1, _seconds_left(credentials, ttl_s))


def _seconds_left(credentials: RefreshableCredentials, most_s: int) -> int:
    """Return the whole seconds until the credentials expire.

    botocore's public interface only says whether they expire within a time, hence the bisection.
    """
    seconds = range(1, most_s + 1)
    return bisect_left(
        seconds, True, key=lambda left_s: credentials.refresh_needed(refresh_in=left_s)
    )


def attachment(file_name: str) -> str:
    """Return a Content-Disposition with the full name, and an ASCII name for old browsers."""
    file_name = saved_name(file_name)
    plain = "".join(
        letter if " " <= letter <= "~" and letter not in '"\\%' else "_" for letter in file_name
    )
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(file_name, safe='')}"
