"""Transcribe samples with a Whisper model, and print the words as lines of JSON.

This is a separate process (`python -I -m portal.transcoding.speech`), because a model takes
gigabytes that are free again once the process ends. The request arrives on stdin. Each line has the
time of the film up to which it is transcribed, the language, and the new words: the start and end
of each, and its text with the space before it. The film is transcribed in windows, so that memory
doesn't grow with its length. A sentence that the end of a window cuts off is transcribed with the
next window.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.transcribe import Word

from portal.transcoding.speech import SAMPLE_RATE_HZ, UNKNOWN_LANGUAGE

_WINDOW_S = 300
# A segment that ends this close to the end of its window is cut off. Its words since the last pause
# of this length belong to the next window.
_CUT_S = 1.0


def main() -> None:
    """Carry out the request on stdin."""
    request = json.load(sys.stdin)
    # The sound may have no samples, and an empty file can't be mapped.
    if not Path(request["samples"]).stat().st_size:
        return
    cores = len(os.sched_getaffinity(0))
    model = WhisperModel(request["model"], compute_type="auto", cpu_threads=cores)
    language = request["language"]
    if language not in (None, *model.supported_languages):
        sys.exit(UNKNOWN_LANGUAGE)
    samples = np.memmap(request["samples"], np.int16, "r")
    at = round(request["start_s"] * SAMPLE_RATE_HZ)
    while at < len(samples):
        window = samples[at : at + _WINDOW_S * SAMPLE_RATE_HZ]
        segments, info = model.transcribe(
            window.astype(np.float32) / 2**15,
            language=language,
            vad_filter=True,
            word_timestamps=True,
            # A mistake in one segment would spread into all later ones.
            condition_on_previous_text=False,
        )
        if info.duration_after_vad:
            language = info.language
        is_last = at + len(window) == len(samples)
        start_s = at / SAMPLE_RATE_HZ
        next_s = (at + len(window)) / SAMPLE_RATE_HZ
        for segment in segments:
            words = segment.words or []
            if words and not is_last and words[-1].end > _WINDOW_S - _CUT_S:
                # The segment may hold a long silence, which the voice filter left out.
                pauses_s = [word.start - before.end for before, word in pairwise(words)]
                long_pauses = (n for n, pause_s in enumerate(pauses_s, 1) if pause_s > _CUT_S)
                first = max(long_pauses, default=0)
                next_s = start_s + words[first].start
                words = words[:first]
            if words:
                _print_words(start_s + words[-1].end, language, words, start_s)
        _print_words(next_s, language, (), 0.0)
        at = round(next_s * SAMPLE_RATE_HZ)


def _print_words(
    until_s: float, language: str | None, words: Iterable[Word], start_s: float
) -> None:
    """Print a line with words whose times count from `start_s` of the film."""
    times = [(float(start_s + word.start), float(start_s + word.end), word.word) for word in words]
    line = {"until_s": float(until_s), "language": language, "words": times}
    print(json.dumps(line), flush=True)  # noqa: T201  # the parent reads it


if __name__ == "__main__":
    main()
