"""The features of this portal. Removing a feature means deleting its modules and its entry here."""

from functools import partial

from portal.features.captions import service as captions
from portal.features.captions import transcription
from portal.features.captions import versions as caption_versions
from portal.features.downloads import service as downloads
from portal.features.imports import service as imports
from portal.features.posters import service as posters
from portal.features.statistics import folding, metrics
from portal.features.webhooks import endpoints, sending
from portal.processing import encoding, first_pass, jobs, later_passes, removal, storyboards
from portal.processing.captions import CAPTIONS, TRANSCRIPTION
from portal.queue.deliveries import DELIVERY
from portal.videos import playback_links
from portal.videos.feature import Feature

_FEATURES = (
    Feature(
        name="captions",
        jobs=((CAPTIONS, captions.store), (TRANSCRIPTION, transcription.make_captions)),
        follow_version=caption_versions.follow_version,
    ),
    Feature(
        name="posters",
        jobs=((posters.POSTER, posters.make_poster),),
        follow_version=posters.follow_version,
        before_removal=posters.move_from_attempt,
    ),
    Feature(
        name="downloads",
        jobs=((downloads.DOWNLOAD, downloads.make_file),),
        sweep=downloads.sweep,
    ),
    Feature(name="links", prune=playback_links.forget_unused),
    Feature(
        name="statistics",
        prune=folding.delete_old_viewers,
        work_beside=folding.fold_forever,
        read_metrics=metrics.read_metrics,
    ),
    Feature(
        name="imports",
        jobs=((imports.IMPORT, imports.run),),
        explain_absence=imports.explain_absence,
    ),
    Feature(name="webhooks", jobs=((DELIVERY, sending.send),), prune=endpoints.forget_old),
)
# What features do when viewers get another version of a video.
VERSION_HOOKS = tuple(
    feature.follow_version for feature in _FEATURES if feature.follow_version is not None
)
# Where to ask why there is no video of an id yet.
ABSENCES = tuple(
    feature.explain_absence for feature in _FEATURES if feature.explain_absence is not None
)
_publish = partial(first_pass.publish_version, hooks=VERSION_HOOKS)
FEATURES = (
    Feature(
        name="films",
        jobs=(
            (jobs.TRANSCODE, partial(_publish, may_encode=False)),
            (jobs.ENCODE, partial(_publish, may_encode=True)),
            (jobs.COMPLETE, later_passes.complete_ladder),
            (jobs.SHARE, encoding.help_with),
            (jobs.STORYBOARD, storyboards.make),
            (jobs.REMOVAL, removal.remove_files),
        ),
    ),
    *_FEATURES,
)
