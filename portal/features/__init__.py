"""Features of this portal. Removing one means deleting its folders and its line here."""

from functools import partial

from portal.features import (
    approval,
    captions,
    cuts,
    discovery,
    downloads,
    editing,
    events,
    feeds,
    groups,
    guests,
    hand_in,
    imports,
    languages,
    library,
    links,
    loudness,
    people,
    posters,
    publishing,
    recording,
    replacement,
    schedule,
    series,
    statistics,
    watching,
    webhooks,
    workshop,
)
from portal.films import encoding, jobs, passes, removal, storyboards
from portal.videos.feature import Feature

_FOLDERS = (
    publishing.FEATURE,
    recording.FEATURE,
    watching.FEATURE,
    discovery.FEATURE,
    library.FEATURE,
    series.FEATURE,
    feeds.FEATURE,
    workshop.FEATURE,
    editing.FEATURE,
    schedule.FEATURE,
    approval.FEATURE,
    captions.FEATURE,
    links.FEATURE,
    posters.FEATURE,
    loudness.FEATURE,
    replacement.FEATURE,
    cuts.FEATURE,
    downloads.FEATURE,
    imports.FEATURE,
    events.FEATURE,
    webhooks.FEATURE,
    statistics.FEATURE,
    people.FEATURE,
    groups.FEATURE,
    guests.FEATURE,
    hand_in.FEATURE,
    languages.FEATURE,
)
# Functions of features that follow when viewers get another version of a video.
VERSION_HOOKS = tuple(
    feature.follow_version for feature in _FOLDERS if feature.follow_version is not None
)
# Functions that find work which will create a video.
PENDING = tuple(feature.find_pending for feature in _FOLDERS if feature.find_pending is not None)
_publish = partial(passes.publish_version, hooks=VERSION_HOOKS)
FILMS = Feature(
    name="films",
    jobs=(
        (jobs.TRANSCODE, partial(_publish, may_encode=False)),
        (jobs.ENCODE, partial(_publish, may_encode=True)),
        (jobs.COMPLETE, passes.complete_ladder),
        (jobs.SHARE, encoding.help_with),
        (jobs.STORYBOARD, storyboards.make),
        (jobs.REMOVAL, removal.remove_files),
    ),
)
FEATURES = (FILMS, *_FOLDERS)
