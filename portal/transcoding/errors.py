"""Errors of a transcode, and notes on renditions that differ from the source, with their texts.

A rejected source stays rejected however often it is retried; a failed transcode may succeed the
next time. Messages and details never contain a signed URL; `without_signatures` removes signatures.
"""

import re
from enum import StrEnum
from pathlib import Path

from portal.locale.messages import Message

_SIGNED_URL = re.compile(r"(https?://[^\s?'\"]+)\?[^\s'\"]+")


class RejectCode(StrEnum):
    """Reason why a source can't be published. Values are stored and documented: keep them."""

    NOT_A_VIDEO = "not_a_video"
    NO_VIDEO_TRACK = "no_video_track"
    ENCRYPTED = "encrypted"
    ZERO_DURATION = "zero_duration"
    EXTERNAL_MEDIA = "external_media"
    TRUNCATED = "truncated"
    DAMAGED = "damaged"
    UNSUPPORTED_CODEC = "unsupported_codec"
    TOO_LARGE = "too_large"
    TOO_LONG = "too_long"
    FILE_TOO_LARGE = "file_too_large"
    TOO_MUCH_WORK = "too_much_work"


class FailCode(StrEnum):
    """Reason why a transcode failed although the source may be valid."""

    SOURCE_UNREACHABLE = "source_unreachable"
    PROBE_FAILED = "probe_failed"
    FFMPEG_FAILED = "ffmpeg_failed"
    STALLED = "stalled"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    OUTPUT_TOO_LARGE = "output_too_large"
    OUTPUT_INCOMPLETE = "output_incomplete"
    TRANSCRIPTION_FAILED = "transcription_failed"
    LANGUAGE_UNKNOWN = "language_unknown"
    LANGUAGE_UNSURE = "language_unsure"


# Reason of each refusal of a source, and the remedy. `limit` is the limit that the source exceeds,
# in words; of UNSUPPORTED_CODEC, it is the codec.
REJECTIONS = {
    RejectCode.NOT_A_VIDEO: Message(
        "This file is not an MP4 or QuickTime video. Export it as MP4 and upload it again."
    ),
    RejectCode.NO_VIDEO_TRACK: Message(
        "This file has no video track. Check the export settings and upload it again."
    ),
    RejectCode.ENCRYPTED: Message(
        "This file is copy-protected and can't be read. Upload an unprotected original."
    ),
    RejectCode.ZERO_DURATION: Message(
        "This file describes a video but holds no pictures. Export it again and upload the result."
    ),
    RejectCode.EXTERNAL_MEDIA: Message(
        "The sound or subtitles of this video are in another file. "
        "Export it as one self-contained file and upload that."
    ),
    RejectCode.TRUNCATED: Message(
        "The end of this file is missing, probably because a copy was interrupted. "
        "Upload the complete file."
    ),
    RejectCode.DAMAGED: Message(
        "The video in this file is damaged and can't be decoded. Export it again and "
        "upload the result."
    ),
    RejectCode.UNSUPPORTED_CODEC: Message(
        "This video uses a codec that the portal doesn't take: %(limit)s. "
        "Export it as H.264 and upload it again."
    ),
    RejectCode.TOO_LARGE: Message(
        "The picture of this video is larger than %(limit)s, the most this portal takes. "
        "Export it in a smaller size and upload it again."
    ),
    RejectCode.TOO_LONG: Message(
        "This video is longer than %(limit)s, the most this portal takes. "
        "Cut it into parts and upload them one by one."
    ),
    RejectCode.FILE_TOO_LARGE: Message(
        "This file is larger than %(limit)s, the most this portal takes. "
        "Export it at a lower bit rate and upload it again."
    ),
    RejectCode.TOO_MUCH_WORK: Message(
        "Converting this video would take more than %(limit)s, the most this portal spends on "
        "one. Export it in a smaller size or at a lower frame rate, or cut it into parts, "
        "and upload that."
    ),
}
LARGEST_SIDE = Message("%(side)s pixels a side")
# Translators: the largest picture that the portal takes.
LARGEST_PICTURE = Message("%(pixels)s megapixels or %(side)s pixels a side")
LARGEST_FILE = Message("%(size)s GB")
# Limits in these messages, which are stored with them.
LIMITS = (LARGEST_SIDE, LARGEST_PICTURE, LARGEST_FILE)


def rejection_words(code: RejectCode, *, limit: str = "") -> Message:
    """Return why a source is refused, with the limit that it exceeds, if the message names one."""
    return Message(REJECTIONS[code], limit=limit)


# The API documents the values of this enum, and the database stores them.
class Note(StrEnum):
    """Difference between a source and its renditions."""

    PARTLY_DAMAGED = "partly_damaged"
    HDR_CONVERTED = "hdr_converted"
    DEINTERLACED = "deinterlaced"
    FRAME_RATE_REDUCED = "frame_rate_reduced"
    NO_AUDIO = "no_audio"
    SOUND_LEFT_OUT = "sound_left_out"
    SOUND_UNSUPPORTED = "sound_unsupported"
    APPLE_SPATIAL_UNSUPPORTED = "apple_spatial_unsupported"
    MPEG_H_UNSUPPORTED = "mpeg_h_unsupported"
    AC_4_UNSUPPORTED = "ac_4_unsupported"
    SURROUND_DOWNMIXED = "surround_downmixed"
    SPATIAL_DOWNMIXED = "spatial_downmixed"
    CHANNELS_LEFT_OUT = "channels_left_out"
    SUBTITLES_LEFT_OUT = "subtitles_left_out"
    TELEMETRY_LEFT_OUT = "telemetry_left_out"
    COPY_UNDELIVERABLE = "copy_undeliverable"
    DOLBY_VISION_UNCONVERTED = "dolby_vision_unconverted"
    LOG_UNCONVERTED = "log_unconverted"
    SIZE_CHANGES_FITTED = "size_changes_fitted"
    FRAMES_MISPLACED = "frames_misplaced"
    OTHER_PICTURE_LEFT_OUT = "other_picture_left_out"
    EDITS_UNFOLLOWED = "edits_unfollowed"

    @property
    def words(self) -> str:
        """Return the text for the editor."""
        return _NOTES[self]


_NOTES = {
    Note.PARTLY_DAMAGED: Message(
        "Parts of this file are damaged or missing and were left out. "
        "If you have an undamaged copy, upload that."
    ),
    Note.HDR_CONVERTED: Message("HDR was converted to standard colours."),
    Note.DEINTERLACED: Message("The picture was deinterlaced."),
    Note.FRAME_RATE_REDUCED: Message("The frame rate was reduced by leaving out whole frames."),
    Note.NO_AUDIO: Message("This file has no audio track."),
    Note.SOUND_LEFT_OUT: Message(
        "A sound track is empty or damaged and was left out. "
        "If you expected to hear it, export the video again."
    ),
    Note.SOUND_UNSUPPORTED: Message("Its sound can't be converted. Export it with AAC sound."),
    Note.APPLE_SPATIAL_UNSUPPORTED: Message(
        "Its sound (Apple spatial audio) can't be converted. Record in stereo."
    ),
    Note.MPEG_H_UNSUPPORTED: Message(
        "Its sound (MPEG-H 3D Audio) can't be converted. Export it with AAC sound."
    ),
    Note.AC_4_UNSUPPORTED: Message(
        "Its sound (Dolby AC-4) can't be converted. Export it with AAC sound."
    ),
    Note.SURROUND_DOWNMIXED: Message("Surround sound was mixed down to stereo."),
    Note.SPATIAL_DOWNMIXED: Message("Spatial sound was mixed down: left and right sound the same."),
    Note.CHANNELS_LEFT_OUT: Message(
        "Some sound channels were left out, because the file does not say where their speakers "
        "are. If something can't be heard, export the sound in stereo."
    ),
    Note.SUBTITLES_LEFT_OUT: Message("Subtitles of an unusual size were left out."),
    Note.TELEMETRY_LEFT_OUT: Message(
        "A text track with readings of the camera, such as its position, was left out."
    ),
    Note.COPY_UNDELIVERABLE: Message(
        "The video stream could not be used as it is, so every quality was encoded."
    ),
    Note.DOLBY_VISION_UNCONVERTED: Message(
        "This file is in a kind of Dolby Vision whose colours can't be converted. "
        "Export it as HDR10 or SDR and upload that."
    ),
    Note.LOG_UNCONVERTED: Message(
        "This file doesn't name its brightness curve, as log footage does, so its colours were "
        "left as they are. If they look pale, export it as SDR and upload that."
    ),
    Note.SIZE_CHANGES_FITTED: Message(
        "The picture changes its size or shape during the video. Each part was fitted into the "
        "largest size, with black bars where its shape differs."
    ),
    Note.FRAMES_MISPLACED: Message(
        "Some frames have a time long after the end of the video. "
        "They are shown right after the frame before them."
    ),
    Note.OTHER_PICTURE_LEFT_OUT: Message(
        "This file has several videos. The one with the largest picture was published. "
        "If you miss another one, export that alone."
    ),
    Note.EDITS_UNFOLLOWED: Message(
        "This file has edits, such as a change of speed, that can't be followed. "
        "Export it from the editing program, and upload the result."
    ),
}


class SourceRejected(Exception):
    """The source can't be published, and retrying doesn't help. `limit` as in `rejection_words`."""

    def __init__(self, code: RejectCode, *, detail: str = "", limit: str = "") -> None:
        self.code = code
        self.message = rejection_words(code, limit=limit)
        self.detail = without_signatures(detail)
        super().__init__(f"{code}: {self.message}")


class TranscodeFailed(Exception):
    """The transcode failed. `detail`, the end of stderr, is for the log, not for people."""

    def __init__(self, code: FailCode, *, detail: str = "") -> None:
        self.code = code
        self.detail = without_signatures(detail)
        super().__init__(code)


class PictureFault(StrEnum):
    """Reason why no poster can be made from a picture. Values are stored."""

    UNREADABLE = "picture_unreadable"
    TOO_LARGE = "picture_too_large"


class PictureRejected(Exception):
    """The uploaded picture is unreadable or too large; `detail` is for the log."""

    def __init__(self, code: PictureFault, *, detail: str = "") -> None:
        self.code = code
        super().__init__(f"{code}: {detail}" if detail else code)


class CopyUndeliverable(Exception):
    """The source's stream can't be copied for players, and must be encoded.

    `reason` is for programs, `detail` for the operator.
    """

    def __init__(self, reason: str, *, detail: str = "") -> None:
        self.reason = reason
        self.detail = without_signatures(detail)
        super().__init__(f"{reason}: {self.detail}" if detail else reason)


class DiskFull(Exception):
    """The disk has no space left for the files of a pass. Retrying elsewhere may succeed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"no space left on the disk of {folder}")


def without_signatures(text: str) -> str:
    """Remove the query string from http addresses, which has the signature of a presigned URL."""
    return _SIGNED_URL.sub(r"\1?[removed]", text)
