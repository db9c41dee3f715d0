"""Makers of renditions: one for whole films, which copies and encodes, and one for cuts."""

from typing import Protocol

from portal.database.models import Version
from portal.films import cutting, whole_films
from portal.films.attempts import OpenAttempt
from portal.films.progress import Reports
from portal.films.sources import Source
from portal.queue.tools import Tools
from portal.transcoding.encoding.assembly import PassOutput
from portal.transcoding.planning.ladder import Plan


class Maker(Protocol):
    """Makes the renditions of a version, in passes. The modules of makers have these functions."""

    async def make_first(
        self, attempt: OpenAttempt, tools: Tools, reports: Reports, *, may_encode: bool
    ) -> tuple[Source, PassOutput | Plan]:
        """Make the renditions with which a version is playable; return them with their source.

        Return the plan instead if it has to be encoded and this job may not encode (`may_encode`).
        Raises `SourceRejected`, `SourceChanged`, or the error that interrupted the work.
        """

    async def make_missing(
        self, attempt: OpenAttempt, tools: Tools, reports: Reports
    ) -> PassOutput:
        """Make further renditions, which the attempt names. Raises as `make_first`."""


def maker_of(version: Version) -> Maker:
    """Return the maker of a version's renditions."""
    return whole_films if version.keep is None else cutting
