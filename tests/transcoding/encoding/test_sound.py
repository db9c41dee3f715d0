"""Sound: every track is there with its own sound and language, in one or two channels."""

import pytest
from media_recipes import CORNERS, MakeMedia, card, lavfi, make_card
from published import Publish
from published_checks import check_published

from portal.transcoding.errors import Note

TONES_HZ = {"und": 440, "eng": 660, "deu": 990}
SURROUND = ("FL", "FR", "FC", "LFE", "BL", "BR")


async def test_each_alternate_holds_its_own_sound(make_media: MakeMedia, publish: Publish) -> None:
    """Three tones; the second track is the default one."""
    picture = card(size="320x180", flashes_s=())
    mute = make_card(make_media, "mute card.mp4", picture=picture, sound=None)
    tracks = [
        option
        for number, language in enumerate(TONES_HZ)
        for option in (
            *("-map", f"{number + 1}:a", f"-metadata:s:a:{number}", f"language={language}"),
            *(f"-disposition:a:{number}", "default" if language == "eng" else "0"),
        )
    ]
    source = make_media(
        "three languages.mp4",
        *("-i", str(mute), *lavfi(*(f"sine=f={hz}:d=7:r=48000" for hz in TONES_HZ.values()))),
        *("-map", "0:v", *tracks, "-c:v", "copy", "-c:a", "aac"),
    )

    published = await publish(source)

    heard = {
        rendition.language: published.sounds[rendition.name].frequency_hz(1, 3)
        for rendition in published.result.audio
    }
    expected = {"en": TONES_HZ["eng"], "de": TONES_HZ["deu"], None: TONES_HZ["und"]}
    assert heard == {language: pytest.approx(hz, abs=3) for language, hz in expected.items()}
    check_published(published, corners=CORNERS)


@pytest.mark.parametrize("speaker", ["FC", "BL"])
async def test_five_channels_become_two_and_none_gets_lost(
    speaker: str, make_media: MakeMedia, publish: Publish
) -> None:
    picture = card(size="320x180", duration_s=3, flashes_s=())
    words = ["0.5*sin(2*PI*500*t)" if name == speaker else "0" for name in SURROUND]
    sound = f"aevalsrc=exprs='{'|'.join(words)}':c=5.1:s=48000:d=3"
    name, rate = f"{speaker}.mp4", ("-b:a", "384k")
    published = await publish(make_card(make_media, name, *rate, picture=picture, sound=sound))
    (rendition,) = published.result.audio
    assert rendition.channels == 2
    heard = published.sounds["audio"]
    left, right = (heard.level(1, 2, channel) for channel in (0, 1))
    assert left > 0.05
    if speaker == "FC":
        assert right == pytest.approx(left, rel=0.05)
    else:
        assert right < 0.01, "a side speaker on the other side"
    assert Note.SURROUND_DOWNMIXED in published.result.output.notes


async def test_a_hole_in_the_sound_does_not_move_what_follows(
    make_media: MakeMedia, publish: Publish
) -> None:
    """As a recorder leaves it that drops sound: the packets of a stretch are missing."""
    path = str(make_card(make_media, "card.mp4"))
    hole = "noise=drop='gt(pts*tb,2)*lt(pts*tb,3.5)'"
    source = make_media("hole.mp4", "-i", path, "-c", "copy", "-bsf:a", hole)
    check_published(await publish(source), corners=CORNERS, in_sync=True)


async def test_other_tracks_do_not_stand_in_the_way(
    make_media: MakeMedia, publish: Publish
) -> None:
    """Time code, cover art and a second picture beside what is to be seen."""
    plain = make_card(make_media, "card.mp4")
    cover = make_media("cover.png", *lavfi("testsrc2=s=64x64"), "-frames:v", "1")
    source = make_media(
        "many tracks.mov",
        *("-i", str(plain), "-i", str(cover), *lavfi("testsrc=s=64x64:d=7")),
        *("-map", "2:v", "-map", "0:a", "-map", "0:v", "-map", "1:v"),
        *("-c", "copy", "-c:v:0", "mpeg4", "-timecode", "10:00:00:00"),
        *("-disposition:v:0", "0", "-disposition:v:1", "default"),
        *("-disposition:v:2", "attached_pic"),
    )
    published = await publish(source)
    assert published.result.renditions[-1].width == 544
    assert len(published.result.audio) == 1
