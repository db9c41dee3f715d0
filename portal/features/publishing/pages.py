"""Upload page, whose scripts call the JSON API and storage, and the quota of an account."""

from quart import Blueprint, render_template

from portal.http.auth import Policy, policy, principal
from portal.http.composition import web_context
from portal.text import duration_in_words
from portal.uploads.quotas import Usage, usage_of

blueprint = Blueprint("upload", __name__)


@blueprint.get("/upload")
@policy(Policy.PUBLISH)
async def page() -> str:
    """Show the form for files and their details."""
    web = web_context()
    return await render_template(
        "publishing/page.html",
        config=web.config,
        categories=await web.categories.names(),
        max_duration=duration_in_words(web.config.max_source_duration_s or 0),
        quota=await own_quota(),
    )


async def own_quota() -> Usage | None:
    """Return the account's use of its quota; None without an account or without quotas."""
    quota = web_context().quota
    account_id = (await principal()).account_id
    if not quota or account_id is None:
        return None
    return (await usage_of([account_id], quota)).get(account_id)
