"""Read what the portal needs of AAC frames (ISO/IEC 14496-3). Pure.

Limits: frames of one or two channels, as the portal writes or copies them.
"""

from typing import NamedTuple

# Samples of a frame in each channel.
FRAME_SAMPLES = 1024
# Identifiers of the elements with which a frame may begin.
_SINGLE_CHANNEL = 0
_CHANNEL_PAIR = 1
_FILL = 6
_LONG_FILL = 15
# Window sequences that end with half of a long window.
_ENDS_LONG = (0, 3)
# Fill elements take at most 270 bytes, and encoders write one of them at most.
_HEAD_BYTES = 288


class WindowEnd(NamedTuple):
    """Second half of a frame's window, which the decoder also uses for the next frame."""

    is_long: bool
    shape: int


def window_end(frame: bytes) -> WindowEnd | None:
    """Return how the window of a frame's first channel ends; None if the frame begins unusually."""
    head = _Bits(frame[:_HEAD_BYTES])
    kind = head.take(3)
    while kind == _FILL:
        count = head.take(4)
        if count == _LONG_FILL:
            count += head.take(8) - 1
        head.skip(8 * count)
        kind = head.take(3)
    if kind not in (_SINGLE_CHANNEL, _CHANNEL_PAIR):
        return None
    head.skip(4)
    has_common_window = kind == _CHANNEL_PAIR and head.take(1)
    if not has_common_window:
        head.skip(8)
    head.skip(1)
    return WindowEnd(is_long=head.take(2) in _ENDS_LONG, shape=head.take(1))


class _Bits:
    """Reader of bits; those after the end are zero."""

    def __init__(self, data: bytes) -> None:
        self._value = int.from_bytes(data)
        self._left = 8 * len(data)

    def take(self, count: int) -> int:
        """Return the next bits as a number."""
        self._left -= count
        number = self._value >> self._left if self._left >= 0 else 0
        return number & (1 << count) - 1

    def skip(self, count: int) -> None:
        """Pass over the next bits."""
        self._left -= count
