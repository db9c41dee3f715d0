"""Transcribe a rendition into cues: the parent's side.

The child with the model reads only samples, which the confined ffmpeg decodes.
"""

import asyncio
import json
import math
import sys
from asyncio import StreamReader
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from portal.processes.child import Limits, Stalled, Watch, ask, guarded, read_tail, spawn, stop
from portal.transcoding.encoding.pictures import RenditionFiles
from portal.transcoding.encoding.sink import pass_folder
from portal.transcoding.encoding.sound_samples import decode_sound
from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.packaging.caption_lines import CLAUSE_ENDS, LINE_WIDTH, width, wrapped
from portal.transcoding.packaging.webvtt import Cue, escaped
from portal.transcoding.speech import SAMPLE_RATE_HZ, UNKNOWN_LANGUAGE, UNSURE_LANGUAGE

_CHILD = ("-I", "-B", "-m", "portal.transcoding.speech")
# On two weak cores, the largest models take a minute for half a minute of sound, and some to load.
_STALL_S = 900.0
_STDERR_TAIL_BYTES = 4000
# A cue has at most two lines, and lasts at most seven seconds. A pause ends a cue, and so does a
# sentence that fills a line.
_LINES = 2
_MAX_CUE_S = 7.0
_PAUSE_S = 0.8
_MIN_CUE_S = 0.1
# Failures by the exit status of the child.
_FAILURES = {
    UNKNOWN_LANGUAGE: FailCode.LANGUAGE_UNKNOWN,
    UNSURE_LANGUAGE: FailCode.LANGUAGE_UNSURE,
}
_SENTENCE_ENDS = tuple(".?!…\u3002\uff1f\uff01")


@dataclass(frozen=True, slots=True)
class Word:
    """Word with the space before it; times are in seconds of the film."""

    start_s: float
    end_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """Cues of a film up to `until_s`. The language is None until speech was found."""

    cues: tuple[Cue, ...]
    until_s: float = 0.0
    language: str | None = None


@asynccontextmanager
async def transcribing(
    sound: RenditionFiles,
    transcript: Transcript,
    *,
    model: Path,
    work_dir: Path,
    paused: asyncio.Event,
) -> AsyncIterator[AsyncIterator[Transcript]]:
    """Extend a transcript to the end of an audio rendition; yields the growing transcripts.

    Speech is expected in the transcript's language; without one, it is detected. The child stands
    still while `paused` is set. Raises `TranscodeFailed`, `DiskFull`, or an error of reading the
    rendition.
    """
    with pass_folder(work_dir) as folder:
        samples = await decode_sound(sound, folder, rate_hz=SAMPLE_RATE_HZ)
        request = {
            "samples": str(samples),
            "model": str(model),
            # Models know languages without regions and scripts.
            "language": transcript.language and transcript.language.partition("-")[0],
            "start_s": transcript.until_s,
        }
        process = await spawn((sys.executable, *_CHILD), limits=Limits(), stdin=True)
        watch = Watch(math.inf, _STALL_S)
        try:
            await ask(process, request)
            async with guarded(process, watch, paused=paused) as tasks:
                errors = tasks.create_task(read_tail(process.stderr, _STDERR_TAIL_BYTES))
                yield _extended(transcript, cast("StreamReader", process.stdout), watch)
        except Stalled:
            raise TranscodeFailed(FailCode.STALLED) from None
        finally:
            await stop(process, signals=())
    if code := _FAILURES.get(process.returncode or 0):
        raise TranscodeFailed(code)
    if process.returncode:
        detail = f"it ended with {process.returncode}: {errors.result().decode(errors='replace')}"
        raise TranscodeFailed(FailCode.TRANSCRIPTION_FAILED, detail=detail)


async def _extended(
    transcript: Transcript, stream: StreamReader, watch: Watch
) -> AsyncIterator[Transcript]:
    """Yield the transcript after each line that the child prints."""
    while line := await stream.readline():
        progress = json.loads(line)
        watch.saw(progress["until_s"])
        words = [Word(*values) for values in progress["words"]]
        transcript = Transcript(
            cues=(*transcript.cues, *cues_of(words)),
            until_s=progress["until_s"],
            language=transcript.language or progress["language"],
        )
        yield transcript


def cues_of(words: Sequence[Word]) -> Iterator[Cue]:
    """Yield cues of a readable length, of words that follow each other."""
    group: list[Word] = []
    for word in words:
        if group and _is_end(group, word):
            yield _cue(group)
            group = []
        elif group and not _fits(group, word):
            cut = _good_cut(group)
            yield _cue(group[:cut])
            group = group[cut:]
        group.append(word)
    if group:
        yield _cue(group)


def _is_end(group: Sequence[Word], following: Word) -> bool:
    """Return whether a cue ends with these words, even if another one fits."""
    text = _text(group)
    is_sentence = width(text) >= LINE_WIDTH and text.endswith(_SENTENCE_ENDS)
    return is_sentence or following.start_s - group[-1].end_s >= _PAUSE_S


def _fits(group: Sequence[Word], following: Word) -> bool:
    lines = wrapped(_text(group) + following.text)
    return len(lines) <= _LINES and following.end_s - group[0].start_s <= _MAX_CUE_S


def _good_cut(group: Sequence[Word]) -> int:
    """Return how many words make a cue: up to a punctuation mark in the second half, or all."""
    for count in range(len(group), len(group) // 2, -1):
        if group[count - 1].text.endswith(CLAUSE_ENDS):
            return count
    return len(group)


def _cue(group: Sequence[Word]) -> Cue:
    start_s = group[0].start_s
    return Cue(
        start_s=start_s,
        end_s=max(group[-1].end_s, start_s + _MIN_CUE_S),
        text="\n".join(escaped(line) for line in wrapped(_text(group))),
    )


def _text(group: Sequence[Word]) -> str:
    return "".join(word.text for word in group).strip()
