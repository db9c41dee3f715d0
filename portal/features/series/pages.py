"""Pages."""

from quart import Blueprint

from portal.features.series import service
from portal.http.auth import Policy, policy, principal

blueprint = Blueprint("series", __name__)


@blueprint.get("/series/<series_id>")
@policy(Policy.WATCH)
async def page(series_id: str) -> str:
    return (await service.read_series(series_id, await principal())).title
