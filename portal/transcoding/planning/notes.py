"""What an editor should know of how a source was treated. Pure."""

from enum import StrEnum

from portal.transcoding.planning.ladder import frame_step
from portal.transcoding.probing.facts import Probe

# A decoder that joins an open group of pictures leaves a few frames out; that is no damage.
_NOTED_DAMAGE_SHARE = 0.005


class Note(StrEnum):
    """Something that is not as in the source. The values are stored: never rename one."""

    PARTLY_DAMAGED = "partly_damaged"
    HDR_CONVERTED = "hdr_converted"
    DEINTERLACED = "deinterlaced"
    FRAME_RATE_REDUCED = "frame_rate_reduced"
    NO_AUDIO = "no_audio"
    SURROUND_DOWNMIXED = "surround_downmixed"
    SUBTITLES_LEFT_OUT = "subtitles_left_out"
    COPY_UNDELIVERABLE = "copy_undeliverable"

    @property
    def words(self) -> str:
        """A sentence for the editor."""
        return _WORDS[self]


_WORDS = {
    Note.PARTLY_DAMAGED: (
        "Parts of this file are damaged or missing and were left out. "
        "If you have an undamaged copy, upload that."
    ),
    Note.HDR_CONVERTED: "HDR was converted to standard colours.",
    Note.DEINTERLACED: "The picture was deinterlaced.",
    Note.FRAME_RATE_REDUCED: "The frame rate was reduced by leaving out whole frames.",
    Note.NO_AUDIO: "This file has no audio track.",
    Note.SURROUND_DOWNMIXED: "Surround sound was mixed down to stereo.",
    Note.SUBTITLES_LEFT_OUT: "Subtitles of an unusual size were left out.",
    Note.COPY_UNDELIVERABLE: (
        "The video stream could not be used as it is, so every quality was encoded."
    ),
}


def notes_for(
    probe: Probe, *, damaged_share: float, lacks_subtitles: bool = False
) -> tuple[Note, ...]:
    """Everything worth telling of a source of which this share could not be decoded."""
    applies = {
        Note.PARTLY_DAMAGED: damaged_share > _NOTED_DAMAGE_SHARE,
        Note.HDR_CONVERTED: probe.video.is_hdr,
        Note.DEINTERLACED: probe.video.interlaced,
        Note.FRAME_RATE_REDUCED: frame_step(probe.video.fps) > 1,
        Note.NO_AUDIO: not probe.audio,
        Note.SURROUND_DOWNMIXED: any(track.channels > 2 for track in probe.audio),
        Note.SUBTITLES_LEFT_OUT: lacks_subtitles,
    }
    return tuple(note for note in Note if applies.get(note))
