"""What a speech model says is doubted, so that films without speech get no invented captions."""

from dataclasses import replace

import pytest
from faster_whisper.transcribe import Segment

from portal.transcoding.speech.__main__ import likeliest_language, plausible

SPOKEN = Segment(
    id=1,
    seek=0,
    start=0.0,
    end=2.0,
    text=" Good morning everyone.",
    tokens=[],
    avg_logprob=-0.3,
    compression_ratio=1.1,
    no_speech_prob=0.05,
    words=None,
    temperature=0.0,
)
OTHER = replace(SPOKEN, text=" Welcome to the harbor.")


@pytest.mark.parametrize(
    "doubt",
    [
        {"compression_ratio": 3.0},
        {"avg_logprob": -1.2},
        {"no_speech_prob": 0.8, "avg_logprob": -0.7},
    ],
)
def test_improbable_text_is_left_out(doubt: dict[str, float]) -> None:
    invented = replace(SPOKEN, text=" Thanks for watching!", **doubt)
    assert list(plausible([SPOKEN, invented, OTHER])) == [SPOKEN, OTHER]


def test_clear_speech_beside_music_is_kept() -> None:
    beside_music = replace(SPOKEN, no_speech_prob=0.8)
    assert list(plausible([beside_music])) == [beside_music]


def test_a_sentence_is_repeated_once_at_most() -> None:
    assert list(plausible([SPOKEN] * 5 + [OTHER])) == [SPOKEN, SPOKEN, OTHER]


def test_the_language_is_that_of_most_samples() -> None:
    jingle = {"en": 0.9, "de": 0.1}
    speech = {"de": 0.95, "en": 0.05}
    assert likeliest_language([jingle, speech, speech, speech]) == "de"


@pytest.mark.parametrize(
    "probabilities", [[], [{"de": 0.4, "nl": 0.35, "en": 0.25}], [{"de": 0.9}, {"fr": 0.9}]]
)
def test_an_unsure_language_is_not_guessed(probabilities: list[dict[str, float]]) -> None:
    assert likeliest_language(probabilities) is None
