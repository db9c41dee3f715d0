"""What the templates see of a video beside its state: its summary, its facts, its addresses."""

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup
from quart import url_for

from portal.config import Config
from portal.database.models import Video
from portal.text import shown, split_tags
from portal.transcoding.packaging.master import Kind
from portal.videos.progress import Progress, RenditionProgress, RenditionStage
from portal.web.pages.embedding import frame_size, iframe
from portal.web.pages.formatting import Moment, Size, bit_rate, clock, moment, size
from portal.web.pages.links import linked
from portal.web.playback import master_url


@dataclass(frozen=True, slots=True)
class Link:
    """Words that lead somewhere."""

    words: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryView:
    """What a video is about, in its editor's words; `linked` is the description as markup."""

    video_id: str
    url: str
    title: str
    description: str
    linked: Markup
    created: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityView:
    """A rendition that can be played."""

    name: str
    rate: str
    size: Size


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsView:
    """What is known of a video."""

    url: str
    categories: list[Link]
    tags: list[Link]
    size: Size
    facts: list[tuple[str, str]]
    qualities: list[QualityView]
    notes: list[str]
    updated: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareView:
    """The addresses of a video, to be copied; those of its stream are empty until it plays."""

    url: str
    page_url: str
    playback_url: str
    embed_code: str
    original_url: str | None


def summary_view(video: Video) -> SummaryView:
    """What a video is about."""
    text = shown(video.description).strip()
    return SummaryView(
        video_id=str(video.id),
        url=url_for("pages.video", video_id=video.id),
        title=shown(video.title),
        description=text,
        linked=linked(text),
        created=moment(video.created_at),
    )


def facts_view(video: Video, progress: Progress, *, category_names: Mapping[int, str]) -> FactsView:
    """What is known of a video; much of it is found out by processing."""
    return FactsView(
        url=url_for("pages.facts", video_id=video.id),
        categories=[
            Link(category_names[number], url_for("library.index", category=number))
            for number in video.category_ids
        ],
        tags=[
            Link(shown(tag), url_for("library.index", tag=tag)) for tag in split_tags(video.tags)
        ],
        facts=_facts(video),
        size=size(video.size_bytes),
        qualities=[_quality(it) for it in progress.renditions if _is_quality(it)],
        notes=[note.words for note in progress.notes],
        updated=moment(video.updated_at),
    )


def share_view(video: Video, config: Config) -> ShareView:
    """The addresses of a video, as others reach them."""
    playback_url = master_url(config, video.id, video.published_attempt)
    original = url_for("downloads.original", video_id=video.id) if config.downloads else None
    return ShareView(
        url=url_for("pages.share", video_id=video.id),
        page_url=f"{config.public_url}/videos/{video.id}",
        playback_url=playback_url,
        embed_code=_embed_code(video) if playback_url else "",
        original_url=original,
    )


def _embed_code(video: Video) -> str:
    width, height = frame_size(video.width, video.height, limits=(None, None))
    # Markup elsewhere, but here it is the text of a field.
    return str(iframe(video, width=width, height=height))


def _facts(video: Video) -> list[tuple[str, str]]:
    facts = [("File", shown(video.file_name))]
    if video.duration_s is not None:
        facts.append(("Duration", clock(video.duration_s)))
    if video.width and video.height:
        facts.append(("Resolution", f"{video.width} × {video.height}"))  # noqa: RUF001 - a sign
    return facts


def _is_quality(rendition: RenditionProgress) -> bool:
    return rendition.kind is not Kind.SUBTITLES and rendition.state is RenditionStage.COMPLETE


def _quality(rendition: RenditionProgress) -> QualityView:
    return QualityView(
        name=rendition.name if rendition.kind is Kind.VIDEO else rendition.label or "Audio",
        rate=bit_rate(rendition.average_bandwidth_bps or 0),
        size=size(rendition.size_bytes or 0),
    )
