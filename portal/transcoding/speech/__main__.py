"""Transcribe samples with a Whisper model, and print the words as lines of JSON.

This is a separate process (`python -I -m portal.transcoding.speech`), because a model takes
gigabytes that are free again once the process ends. The request arrives on stdin. Each line has the
time of the film up to which it is transcribed, the language, and the new words: the start and end
of each, and its text with the space before it. The film is transcribed in windows, so that memory
doesn't grow with its length. A sentence that the end of a window cuts off is transcribed with the
next window.

A language that the request doesn't name is that of most samples from all over the film. Models
invent text where nobody speaks, so repeated and improbable segments are left out.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.transcribe import Segment, Word
from faster_whisper.vad import collect_chunks, get_speech_timestamps

from portal.transcoding.speech import SAMPLE_RATE_HZ, UNKNOWN_LANGUAGE, UNSURE_LANGUAGE

_WINDOW_S = 300
# A segment that ends this close to the end of its window is cut off. Its words since the last pause
# of this length belong to the next window.
_CUT_S = 1.0
# Samples of a film by which its language is detected. A model hears half a minute at once.
_SAMPLES = 6
_SAMPLE_S = 30
# Mean probability, over all samples with speech, below which the language is unsure.
_MIN_LANGUAGE_PROBABILITY = 0.5
# Limits of Whisper's authors, by which they try a segment again. Text above the first one repeats
# itself; the others are for text that the model itself doubts.
_MAX_COMPRESSION_RATIO = 2.4
_MIN_LOG_PROBABILITY = -1.0
_MAX_NO_SPEECH_PROBABILITY = 0.6
# Least log probability of text where the model hears no speech.
_MIN_DOUBTFUL_LOG_PROBABILITY = -0.5
# Times that people say the same sentence in a row.
_MAX_REPETITIONS = 2


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
    if language is None and model.model.is_multilingual:
        probabilities = _language_probabilities(model, samples)
        language = likeliest_language(probabilities)
        if probabilities and language is None:
            sys.exit(UNSURE_LANGUAGE)
    at = round(request["start_s"] * SAMPLE_RATE_HZ)
    while at < len(samples):
        window = samples[at : at + _WINDOW_S * SAMPLE_RATE_HZ]
        segments, info = model.transcribe(
            _as_floats(window),
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
        for segment in plausible(segments):
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


def _as_floats(samples: Any) -> Any:
    return samples.astype(np.float32) / 2**15


def _language_probabilities(model: WhisperModel, samples: Any) -> list[Mapping[str, float]]:
    """Return the probability of each language, for each of up to `_SAMPLES` excerpts with speech.

    `samples` has the film's sound as 16-bit integers at `SAMPLE_RATE_HZ`. The list is empty if
    nobody speaks in the excerpts.
    """
    probabilities: list[Mapping[str, float]] = []
    length = _SAMPLE_S * SAMPLE_RATE_HZ
    count = min(_SAMPLES, -(-len(samples) // length))
    for number in range(count):
        first = round(number * max(0, len(samples) - length) / max(1, count - 1))
        sound = _as_floats(samples[first : first + length])
        if speech := get_speech_timestamps(sound):
            spoken = np.concatenate(collect_chunks(sound, speech)[0])
            _, _, languages = model.detect_language(spoken)
            probabilities.append(dict(languages))
    return probabilities


def likeliest_language(probabilities: Sequence[Mapping[str, float]]) -> str | None:
    """Return the language with the highest mean probability; None if it is unsure.

    `probabilities` has those of all languages, for each sample of the film with speech.
    """
    if not probabilities:
        return None
    means = {
        language: sum(sample.get(language, 0.0) for sample in probabilities) / len(probabilities)
        for language in set().union(*probabilities)
    }
    language = max(means, key=lambda name: means[name])
    return language if means[language] >= _MIN_LANGUAGE_PROBABILITY else None


def plausible(segments: Iterable[Segment]) -> Iterator[Segment]:
    """Yield the segments that people have probably spoken."""
    repetitions = 0
    last_text = None
    for segment in segments:
        text = segment.text.strip().casefold()
        repetitions = repetitions + 1 if text == last_text else 1
        last_text = text
        if repetitions <= _MAX_REPETITIONS and not _is_improbable(segment):
            yield segment


def _is_improbable(segment: Segment) -> bool:
    has_speech = segment.no_speech_prob <= _MAX_NO_SPEECH_PROBABILITY
    least = _MIN_LOG_PROBABILITY if has_speech else _MIN_DOUBTFUL_LOG_PROBABILITY
    return bool(segment.compression_ratio > _MAX_COMPRESSION_RATIO or segment.avg_logprob < least)


def _print_words(
    until_s: float, language: str | None, words: Iterable[Word], start_s: float
) -> None:
    """Print a line with words whose times count from `start_s` of the film."""
    times = [(float(start_s + word.start), float(start_s + word.end), word.word) for word in words]
    line = {"until_s": float(until_s), "language": language, "words": times}
    print(json.dumps(line), flush=True)  # noqa: T201  # the parent reads it


if __name__ == "__main__":
    main()
