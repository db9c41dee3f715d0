"""Hear samples with a Whisper model, and print the words as lines of JSON.

It runs in a process of its own (`python -I -m portal.transcoding.speech`), because a model takes
gigabytes that are free again once it ends. The request arrives on stdin. Each line says up to which
time of the film all is written, in which language, and which words are new: when each begins and
ends, and its text with the space before it. The film is heard in windows, so that memory does not
grow with it; what the end of one cuts off is heard again with the next.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.transcribe import Word

from portal.transcoding.speech import SAMPLE_RATE_HZ, UNKNOWN_LANGUAGE

_WINDOW_S = 300
# What goes on so close to its end is cut off: what is said since the last pause of this length.
_CUT_S = 1.0


def main() -> None:
    """Answer one request."""
    request = json.load(sys.stdin)
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
            # A mistake would go on into all that follows.
            condition_on_previous_text=False,
        )
        if info.duration_after_vad:
            language = info.language
        is_last = at + len(window) == len(samples)
        start_s, next_s = at / SAMPLE_RATE_HZ, (at + len(window)) / SAMPLE_RATE_HZ
        for segment in segments:
            words = segment.words or []
            if words and not is_last and words[-1].end > _WINDOW_S - _CUT_S:
                # It may have begun long before: silence within it was left out.
                pauses_s = [it.start - before.end for before, it in pairwise(words)]
                first = max((n for n, it in enumerate(pauses_s, 1) if it > _CUT_S), default=0)
                words, next_s = words[:first], start_s + words[first].start
            if words:
                _tell(start_s + words[-1].end, language, words, start_s)
        _tell(next_s, language, (), 0.0)
        at = round(next_s * SAMPLE_RATE_HZ)


def _tell(until_s: float, language: str | None, words: Iterable[Word], start_s: float) -> None:
    said = [(float(start_s + it.start), float(start_s + it.end), it.word) for it in words]
    line = {"until_s": float(until_s), "language": language, "words": said}
    print(json.dumps(line), flush=True)  # noqa: T201  # the answer


if __name__ == "__main__":
    main()
