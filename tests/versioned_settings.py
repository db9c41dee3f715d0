"""Settings of a video that programs replace in the version that they read."""

from typing import Any

from api_client import answered, problem
from signed_in import Sender

Body = dict[str, Any]


async def check_versions(sender: Sender, path: str, new: Body, old: Body, *, conflict: str) -> Body:
    """Replace a setting, and check that only its present version is replaced; return its record.

    `old` is the present setting and is restored. A replacement of another version is refused with
    the code `conflict`.
    """

    async def put(body: Body, **headers: str) -> Any:
        return await sender.ask("PUT", path, json=body, headers=headers)

    first = await sender.get(path)
    etag = first.headers["ETag"]
    assert (await sender.get(path, headers={"If-None-Match": etag})).status_code == 304
    recorded = await answered(await put(new, **{"If-Match": etag}))
    assert await answered(await sender.get(path)) == recorded
    # The response to the first request may have been lost.
    assert await answered(await put(new, **{"If-Match": etag})) == recorded
    await problem(await put(old, **{"If-Match": etag}), 412, conflict)
    await problem(await put(old), 428, "precondition_required")
    assert await answered(await put(old, **{"If-Match": "*"})) == await answered(first)
    return recorded
