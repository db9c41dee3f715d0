"""A Whisper model that always hears the same sentence, and sound that it takes for speech.

No trained model comes as a package. This one is a file as trained ones are, read and run by the
same libraries, and of their shape but for its size: what it says next follows from what it said
last, whatever it hears.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from ctranslate2.specs import WhisperSpec
from running_portal import run_ffmpeg
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

# What it hears in whatever it hears, within so many seconds.
WORDS = ("Welcome", "to", "a", "quiet", "harbour.")
SAID_S = 4.0
SAID = " ".join(WORDS)
# As many places as words follow each other, and two for the angles by which it finds times.
_SIZE = 32
_FRAMES, _FRAMES_PER_S = 1500, 50
_RATE_HZ = 16_000
_SPECIAL = (
    *("<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>"),
    *("<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"),
)
# Formants of vowels, in Hz.
_VOWELS = ((730, 1090, 2440), (270, 2290, 3010), (530, 1840, 2480), (300, 870, 2240))


def make_model(folder: Path) -> Path:
    """Write the model's files."""
    folder.mkdir()
    text = [f"Ġ{word}" for word in WORDS] + sorted(pre_tokenizers.ByteLevel.alphabet())
    times = [f"<|{number / 50:.2f}|>" for number in range(_FRAMES + 1)]
    # An empty one is how models of several languages are known.
    vocabulary = [*text, "", *_SPECIAL, *times]
    ids = {token: number for number, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.BPE(vocab={it: ids[it] for it in [*text, ""]}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([*_SPECIAL, *times])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "preprocessor_config.json").write_text(json.dumps({"feature_size": 80}))

    spec = WhisperSpec(1, 1, 1, 1)
    _fill_encoder(spec.encoder)
    _fill_decoder(spec.decoder, ids)
    spec.register_vocabulary(vocabulary)
    spec.config.suppress_ids, spec.config.suppress_ids_begin = [], [ids["<|endoftext|>"]]
    spec.config.lang_ids = [ids["<|en|>"], ids["<|de|>"]]
    spec.config.alignment_heads = [(0, 0)]
    spec.validate()
    spec.optimize(quantization=None)
    spec.save(str(folder))
    return folder


def _fill_encoder(encoder: Any) -> None:
    """Nothing of the sound gets through; each frame says where it is, by an angle."""
    for convolution, channels in ((encoder.conv1, 80), (encoder.conv2, _SIZE)):
        convolution.weight, convolution.bias = _zeros(_SIZE, channels, 3), _zeros(_SIZE)
    angles = np.pi * np.arange(_FRAMES) / _FRAMES
    encoder.position_encodings.encodings = _zeros(_FRAMES, _SIZE)
    encoder.position_encodings.encodings[:, -2:] = np.stack([np.cos(angles), np.sin(angles)], 1)
    _even(encoder.layer_norm)
    _fill_layer(encoder.layer[0])


def _fill_decoder(decoder: Any, ids: dict[str, int]) -> None:
    """Each token leads to the one that follows, and looks at the frames where it is said."""
    said = [f"Ġ{word}" for word in WORDS]
    sentence = ("<|transcribe|>", "<|0.00|>", *said, f"<|{SAID_S:.2f}|>", "<|endoftext|>")
    known, following = _zeros(len(ids), _SIZE), _zeros(len(ids), _SIZE)
    known[:, 0], following[ids["<|endoftext|>"], 0] = 1, 8
    steps = [("<|startoftranscript|>", "<|en|>"), *pairwise(sentence)]
    for place, (token, after) in enumerate(steps, start=1):
        known[ids[token], 0], known[ids[token], place] = 0, 1
        following[ids[after], place] = 8
    decoder.embeddings.weight, decoder.projection.weight = known, following
    decoder.position_encodings.encodings = _zeros(448, _SIZE)
    _even(decoder.layer_norm)
    layer = decoder.layer[0]
    _fill_layer(layer)
    _even(layer.attention.layer_norm)
    for linear, size in zip(layer.attention.linear, (_SIZE, 2 * _SIZE, _SIZE), strict=True):
        linear.weight, linear.bias = _zeros(size, _SIZE), _zeros(size)
    query, keys = layer.attention.linear[:2]
    for axis in (-2, -1):
        keys.weight[_SIZE + axis, axis] = 1
    for number, word in enumerate(said):
        at_s = SAID_S * (number + 0.5) / len(said)
        angle = np.pi * at_s * _FRAMES_PER_S / _FRAMES
        query.weight[-2:, int(np.argmax(known[ids[word]]))] = 40 * np.cos(angle), 40 * np.sin(angle)


def _fill_layer(layer: Any) -> None:
    """A layer that adds nothing."""
    attention, feed = layer.self_attention, layer.ffn
    for part in (attention, feed):
        _even(part.layer_norm)
    linears = (*attention.linear, feed.linear_0, feed.linear_1)
    for linear, size in zip(linears, (3 * _SIZE, _SIZE, _SIZE, _SIZE), strict=True):
        linear.weight, linear.bias = _zeros(size, _SIZE), _zeros(size)


def _even(norm: Any) -> None:
    norm.gamma, norm.beta = np.ones(_SIZE, np.float32), _zeros(_SIZE)


def _zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def babble(seconds: float) -> Any:
    """Samples of a voice that says vowels, which is told from silence and from music."""
    syllable = _RATE_HZ // 4
    said = [_vowel(formants, syllable) for formants in _VOWELS]
    return np.resize(np.concatenate(said), round(seconds * _RATE_HZ))


def _vowel(formants: tuple[int, int, int], count: int) -> Any:
    pulses = np.zeros(count)
    pulses[:: _RATE_HZ // 115] = 1
    for hertz, width in zip(formants, (60, 90, 150), strict=True):
        decay = np.exp(-np.pi * width / _RATE_HZ)
        first, second = 2 * decay * np.cos(2 * np.pi * hertz / _RATE_HZ), -decay * decay
        before = last = 0.0
        for number, pulse in enumerate(pulses):
            before, last = last, (1 - first - second) * pulse + first * last + second * before
            pulses[number] = last
    pulses *= np.sin(np.pi * np.arange(count) / count) ** 0.7
    return pulses / np.abs(pulses).max() / 2


def make_spoken_video(path: Path, *stretches_s: float) -> Path:
    """A video in which someone is silent, speaks, is silent and so on, so many seconds each."""
    parts = [
        babble(seconds) if number % 2 else np.zeros(round(seconds * _RATE_HZ))
        for number, seconds in enumerate(stretches_s)
    ]
    samples = path.with_suffix(".pcm")
    samples.write_bytes((np.concatenate(parts) * 2**15).astype(np.int16).tobytes())
    picture = f"testsrc2=size=320x180:rate=10:duration={sum(stretches_s)}"
    sound = ("-f", "s16le", "-ar", str(_RATE_HZ), "-ac", "1", "-i", str(samples))
    encoding = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "20")
    return run_ffmpeg(path, "-f", "lavfi", "-i", picture, *sound, *encoding, "-c:a", "aac")
