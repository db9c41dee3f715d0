"""Telemetry is told from captions in forms with nothing in common but numbers."""

import pytest
from media_recipes import MakeMedia, lavfi
from published import probe

from portal.transcoding.probing.telemetry import is_telemetry

READINGS = [
    "F/2.8, SS 320, ISO 100, EV 0, GPS (10.0000, 20.0000, 19), D 24.5m, H 6.00m, H.S 1.10m/s",
    '<font size="28">SrtCnt : 1, DiffTime : 33ms\n2023-06-07 12:34:56.789\n[iso : 110] '
    "[shutter : 1/200.0] [fnum : 280] [ct : 5500] [color_md : default] [latitude: 48.1] "
    "[longitude: 11.5] [rel_alt: 1.2 abs_alt: 500.1] </font>",
    "HOME(149.0251,-20.2532) 2017.09.14 22:58:43\nGPS(149.0244,-20.2535,16) BAROMETER:36.9",
    "HOME (116.3, 39.9) D 12.3m H 45.6m",
    "BAROMETER:1.9",
    "$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47",
    "[1561000]$GPRMC,083559.00,A,4717.11437,N,00833.91522,E,0.004,77.52,091202,,,A*57",
    "45 km/h N48.1 E11.5",
    "N:48.13 E:11.5 x:0.01 y:0.02 z:1.0",
    '{"lat": 48.1, "lon": 11.5, "alt": 500}',
    "48.13743, 11.57549",
    "+33.1268-117.3273/",
    "48° 8' 13.2\" N 11° 34' 31\" E",
    "Lat 48.1 Lon 11.5 Alt 520 m Speed 12 km/h",
    "Höhe: 12,5 m",
    "T=23.5 P=1013.2 RH=45",
    "2023-06-07 12:34:56",
]
SPEECH = [
    "At 30 km/h the car stops, at 50 it doesn't.",
    "Set ISO 100 and shutter 200 for the sky",
    "The temperature rises to 23.5 °C today.",
    "We flew at an altitude of 120 m.",
    "On 2023-06-07 12:30 we met again.",
    "Pi is 3.14159",
    "Score: 3",
    "2 + 2 = 4",
    "10, 9, 8, 7",
    "In 1999 we had 12 people.",
    "[Music]",
]


@pytest.mark.parametrize("text", READINGS)
def test_readings_are_telemetry(text: str) -> None:
    assert is_telemetry([text, text, "No signal"])


@pytest.mark.parametrize("text", SPEECH)
def test_speech_with_numbers_is_not_telemetry(text: str) -> None:
    assert not is_telemetry([text])


def test_the_majority_of_cues_decides() -> None:
    assert not is_telemetry([READINGS[0], *SPEECH])
    assert is_telemetry([*READINGS, *SPEECH])
    assert not is_telemetry([])
    assert not is_telemetry(["", " "])


async def test_names_of_devices_are_not_names_of_tracks(make_media: MakeMedia) -> None:
    sounds = ("DJI.Audio", "GoPro AAC", "Voices")
    named = [
        argument
        for number, name in enumerate(sounds)
        for argument in ("-map", "1", f"-metadata:s:a:{number}", f"handler_name={name}")
    ]
    film = make_media("named.mp4", *lavfi("testsrc2=d=1", "sine=d=1"), "-map", "0", *named)
    audio = (await probe(film)).audio
    assert [track.title for track in audio] == [None, None, "Voices"]
