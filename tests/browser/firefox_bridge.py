"""Bridge between Playwright and Firefox. Arguments: the path of Firefox, then its arguments.

Playwright can't make a context without a command of WebDriver BiDi that the extended support
release does not know. This program is a proxy between them that handles the command. It can
be removed once Debian's Firefox knows the command.
"""

import asyncio
import json
import re
import sys

from aiohttp import ClientSession, web

LISTENS = re.compile(rb"(WebDriver BiDi listening on )(ws://\S+)")
# Sets a colour scheme; Firefox keeps its default.
UNKNOWN = "emulation.setMediaFeaturesOverride"


async def run_behind_bridge(firefox: str, *arguments: str) -> int:
    """Run the browser until it ends, and print the bridge's address instead of its own."""
    stderr = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(firefox, *arguments, stderr=stderr)
    assert process.stderr is not None
    async for line in process.stderr:
        if match := LISTENS.search(line):
            port = await open_bridge(match[2].decode())
            line = match[1] + b"ws://127.0.0.1:%d\n" % port
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
    return await process.wait()


async def open_bridge(browser_url: str) -> int:
    """Listen for Playwright, and return the port."""

    async def connect(request: web.Request) -> web.WebSocketResponse:
        client = web.WebSocketResponse(max_msg_size=0)
        await client.prepare(request)
        url = browser_url + request.path
        async with ClientSession() as session, session.ws_connect(url, max_msg_size=0) as browser:

            async def pass_answers() -> None:
                async for answer in browser:
                    await client.send_str(answer.data)
                await client.close()

            async with asyncio.TaskGroup() as group:
                group.create_task(pass_answers())
                async for message in client:
                    command = json.loads(message.data)
                    if command["method"] == UNKNOWN:
                        answer = {"type": "success", "id": command["id"], "result": {}}
                        await client.send_json(answer)
                    else:
                        await browser.send_str(message.data)
                await browser.close()
        return client

    app = web.Application()
    app.router.add_get("/{path:.*}", connect)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return int(runner.addresses[0][1])


if __name__ == "__main__":
    sys.exit(asyncio.run(run_behind_bridge(*sys.argv[1:])))
