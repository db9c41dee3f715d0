"""Upload page, whose scripts call the JSON API and storage, and the quota of an account."""

from quart import Blueprint, render_template

from portal.config import Config
from portal.features.editing.visibility import visibility_choices
from portal.http.auth import Policy, policy, principal
from portal.http.composition import web_context
from portal.text import duration_in_words, size_in_words
from portal.uploads.quotas import Usage, usage_of

blueprint = Blueprint("upload", __name__)


@blueprint.get("/upload")
@policy(Policy.PUBLISH)
async def page() -> str:
    """Show the form for files and their details."""
    web = web_context()
    person = await principal()
    return await render_template(
        "publishing/page.html",
        config=web.config,
        categories=await web.categories.names(),
        limits=_limits_in_words(web.config),
        quota=await own_quota(),
        visibilities=visibility_choices(person, person.account_id),
    )


async def own_quota() -> Usage | None:
    """Return the account's use of its quota; None without an account or without quotas."""
    quota = web_context().quota
    account_id = (await principal()).account_id
    if not quota or account_id is None:
        return None
    return (await usage_of([account_id], quota)).get(account_id)


def _limits_in_words(config: Config) -> list[str]:
    """Return the lines below the drop zone."""
    most = [size_in_words(config.max_source_bytes)] if config.max_source_bytes else []
    if config.max_source_duration_s:
        most.append(duration_in_words(config.max_source_duration_s))
    return [f"Up to {' and '.join(most)} each"] if most else []
