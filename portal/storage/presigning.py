"""Presigned addresses: AWS Signature Version 4 in the query string, made by botocore's signer.

The client's own `generate_presigned_url` works out the endpoint anew for each address and takes
several times as long; a long playlist has thousands. Here it is asked once for the bucket's
address, and only the signing is done for each key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any
from urllib.parse import quote, urlencode

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import NoCredentialsError

from portal.text import shown


class Presigner:
    """Signs addresses of one bucket as seen through one client. Keys need no URL quoting."""

    def __init__(self, session: Any, client: Any, bucket: str) -> None:
        self._session = session
        self._client = client
        self._bucket = bucket
        self._base = ""

    async def put(self, key: str, *, content_type: str, ttl_s: int) -> str:
        """Address to PUT this key to; the Content-Type is part of the signature."""
        sign = await self._signer(ttl_s)
        return sign("PUT", key, {"Content-Type": content_type})

    async def part(
        self, key: str, multipart_id: str, number: int, *, size_bytes: int, ttl_s: int
    ) -> str:
        """Address to PUT one part of a multipart upload to.

        The size is part of the signature, so storage refuses a body of any other; browsers send
        Content-Length by themselves.
        """
        sign = await self._signer(ttl_s)
        query = urlencode({"partNumber": number, "uploadId": multipart_id})
        return sign("PUT", f"{key}?{query}", {"Content-Length": str(size_bytes)})

    async def get(self, key: str, *, ttl_s: int) -> str:
        """Address to read this one object from."""
        return (await self._signer(ttl_s))("GET", key, {})

    async def download(self, key: str, *, file_name: str, ttl_s: int) -> str:
        """As `get`; storage is asked to have the object saved under this name (RFC 6266)."""
        query = urlencode({"response-content-disposition": _attachment(file_name)}, quote_via=quote)
        return (await self._signer(ttl_s))("GET", f"{key}?{query}", {})

    async def get_many(self, keys: Collection[str], *, ttl_s: int) -> dict[str, str]:
        """As `get` for many keys; off the event loop, for it may take a while."""
        sign = await self._signer(ttl_s)
        return await asyncio.to_thread(lambda: {key: sign("GET", key, {}) for key in keys})

    async def bucket_url(self) -> str:
        """Address of the bucket, with a slash at the end."""
        if not self._base:
            parameters = {"Bucket": self._bucket, "Key": "-"}
            address = await self._client.generate_presigned_url("get_object", Params=parameters)
            self._base = address.partition("?")[0].removesuffix("-")
        return self._base

    async def _signer(self, ttl_s: int) -> Callable[[str, str, dict[str, str]], str]:
        base = await self.bucket_url()
        credentials = await self._session.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        frozen = await credentials.get_frozen_credentials()
        # A signature may not outlive the credentials' own token, but that is for AWS to check.
        auth = S3SigV4QueryAuth(frozen, "s3", self._client.meta.region_name, expires=ttl_s)

        def sign(method: str, key: str, headers: dict[str, str]) -> str:
            request = AWSRequest(method, base + key, headers=headers)
            auth.add_auth(request)
            address: str = request.url
            return address

        return sign


def _attachment(file_name: str) -> str:
    """A Content-Disposition with the name in full, and in ASCII for what can't read that."""
    file_name = shown(file_name)
    plain = "".join(it if " " <= it <= "~" and it not in '"\\%' else "_" for it in file_name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(file_name, safe='')}"
