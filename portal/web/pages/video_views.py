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
from portal.videos.reading import audience_of
from portal.web.pages.access_views import badge_words
from portal.web.pages.embedding import frame_size, iframe
from portal.web.pages.formatting import Moment, Size, bit_rate, clock, moment, size
from portal.web.pages.links import linked
from portal.web.playback_addresses import master_url

RENDITION_WORDS = {
    RenditionStage.PLANNED: "Waiting to be made",
    RenditionStage.RUNNING: "Being made",
    RenditionStage.FAILED: "Could not be made",
}


@dataclass(frozen=True, slots=True)
class Link:
    """Words that lead somewhere."""

    words: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryView:
    """What a video is about, in its editor's words; `linked` is the description as markup.

    `badge` tells it from a public one.
    """

    video_id: str
    url: str
    title: str
    description: str
    linked: Markup
    categories: list[Link]
    tags: list[Link]
    created: Moment
    visibility: str
    badge: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityView:
    """A rendition: its bit rate and size once it can be played, else how it stands."""

    name: str
    words: str
    size: Size | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackView:
    """A sound track or the captions of a language, as the file names them; `words` are the rest."""

    name: str
    language: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguagesView:
    """Names of a video's captions, and of its sound tracks that have a language."""

    captions: list[str]
    sound: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsView:
    """What is known of a video; `changed` is when a person last changed it, None if nobody did."""

    url: str
    size: Size
    facts: list[tuple[str, str]]
    qualities: list[QualityView]
    captions: list[TrackView]
    audio: list[TrackView]
    has_tracks: bool
    notes: list[str]
    original_url: str | None
    changed: Moment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareView:
    """The addresses of a video, to be copied; empty ones of its stream lead others nowhere yet."""

    url: str
    page_url: str
    playback_url: str
    embed_code: str
    is_private: bool
    original_url: str | None


def summary_view(video: Video, category_names: Mapping[int, str]) -> SummaryView:
    """What a video is about."""
    text = shown(video.description).strip()
    return SummaryView(
        video_id=str(video.id),
        url=url_for("pages.video", video_id=video.id),
        title=shown(video.title),
        description=text,
        linked=linked(text, duration_s=video.duration_s or 0.0),
        categories=[
            Link(category_names[number], url_for("library.index", category=number))
            for number in video.category_ids
        ],
        tags=[
            Link(shown(tag), url_for("library.index", tag=tag)) for tag in split_tags(video.tags)
        ],
        created=moment(video.created_at),
        visibility=video.visibility.value,
        badge=badge_words(video),
    )


def facts_view(video: Video, progress: Progress, *, config: Config) -> FactsView:
    """What is known of a video; much of it is found out by processing."""
    return FactsView(
        url=url_for("workshop.facts", video_id=video.id),
        facts=_facts(video),
        size=size(video.size_bytes),
        qualities=[_quality(it) for it in progress.renditions if it.kind is Kind.VIDEO],
        captions=_tracks(progress, Kind.SUBTITLES),
        audio=_tracks(progress, Kind.AUDIO),
        has_tracks=bool(progress.renditions),
        notes=[note.words for note in progress.notes],
        original_url=original_url(video, config),
        changed=moment(video.changed_at) if video.changed_at else None,
    )


def original_url(video: Video, config: Config) -> str | None:
    """The address of the uploaded file, where it may be had."""
    return url_for("downloads.original", video_id=video.id) if config.downloads else None


def share_view(video: Video, config: Config) -> ShareView:
    """The addresses of a video, as others reach them."""
    is_private = audience_of(video).is_private
    playback_url = master_url(config, video.id, video.published_attempt, is_private=is_private)
    return ShareView(
        url=url_for("pages.share", video_id=video.id),
        page_url=f"{config.public_url}/videos/{video.id}",
        # Of a private video they are of use to nobody else: for others there are playback links.
        playback_url="" if is_private else playback_url,
        embed_code=_embed_code(video) if playback_url and not is_private else "",
        is_private=is_private,
        original_url=original_url(video, config),
    )


def languages_view(progress: Progress) -> LanguagesView:
    """What the tracks of a video are called that can be chosen by now."""
    done = [it for it in progress.renditions if it.state is RenditionStage.COMPLETE]
    return LanguagesView(
        captions=[_track_name(it) for it in done if it.kind is Kind.SUBTITLES],
        sound=[_track_name(it) for it in done if it.kind is Kind.AUDIO and it.language],
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


def _tracks(progress: Progress, kind: Kind) -> list[TrackView]:
    tracks = [it for it in progress.renditions if it.kind is kind]
    return [_track(it, is_alone=len(tracks) == 1) for it in tracks]


def _track(rendition: RenditionProgress, *, is_alone: bool) -> TrackView:
    words = []
    if rendition.is_default and not is_alone:
        words.append("default")
    if rendition.state is not RenditionStage.COMPLETE:
        words.append(RENDITION_WORDS[rendition.state])
    elif rendition.kind is Kind.AUDIO:
        words.append(bit_rate(rendition.average_bandwidth_bps or 0))
    language = rendition.language or ""
    return TrackView(name=_track_name(rendition), language=language, words=" · ".join(words))


def _track_name(rendition: RenditionProgress) -> str:
    plain = "Audio" if rendition.kind is Kind.AUDIO else "Captions"
    return shown(rendition.label or "") or plain


def _quality(rendition: RenditionProgress) -> QualityView:
    if rendition.state is not RenditionStage.COMPLETE:
        words = RENDITION_WORDS[rendition.state]
        return QualityView(name=rendition.name, words=words, size=None)
    rate = bit_rate(rendition.average_bandwidth_bps or 0)
    return QualityView(name=rendition.name, words=rate, size=size(rendition.size_bytes or 0))
