"""The upload page, and what of their quota is left to who asks.

Its scripts talk to the JSON API and to storage.
"""

from quart import Blueprint, render_template

from portal.config import Config
from portal.text import duration_in_words, size_in_words
from portal.uploads.quotas import Usage, usage_of
from portal.web.auth import Policy, policy, principal
from portal.web.composition import web_context
from portal.web.pages.visibility import visibility_choices

blueprint = Blueprint("upload", __name__)


@blueprint.get("/upload")
@policy(Policy.PUBLISH)
async def page() -> str:
    """The form for files and what is said of them."""
    web, who = web_context(), await principal()
    return await render_template(
        "upload/index.html",
        config=web.config,
        categories=await web.categories.names(),
        limits=_limits_in_words(web.config),
        quota=await own_quota(),
        visibilities=visibility_choices(who, who.account_id),
    )


async def own_quota() -> Usage | None:
    """What who asks has used of their quota; None without an account or without quotas."""
    quota, account_id = web_context().quota, (await principal()).account_id
    if not quota or account_id is None:
        return None
    return (await usage_of([account_id], quota)).get(account_id)


def _limits_in_words(config: Config) -> list[str]:
    """The lines below the drop zone."""
    most = [size_in_words(config.max_source_bytes)] if config.max_source_bytes else []
    if config.max_source_duration_s:
        most.append(duration_in_words(config.max_source_duration_s))
    return [f"Up to {' and '.join(most)} each"] if most else []
