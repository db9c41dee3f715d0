"""A copy is uploaded while it is written, and finished as what the encoder writes."""

from pathlib import Path

from copied import ignore
from media_recipes import MakeMedia
from published import FolderSink, playlist

from portal.concurrency.task_group import task_group
from portal.transcoding.copying.remux import TrackCopy, remux
from portal.transcoding.encoding.decoding_check import check_decoding
from portal.transcoding.encoding.finishing import (
    finish_audio,
    finish_video,
    read_playlists,
    shared_target_s,
)
from portal.transcoding.encoding.output_validation import is_copy_usable
from portal.transcoding.encoding.segment_upload import SegmentUpload
from portal.transcoding.planning.ladder import plan_renditions
from portal.transcoding.probing.probe import probe


async def test_a_copy_is_uploaded_and_finished_as_what_is_encoded(
    make_video: MakeMedia, sink: FolderSink, work_dir: Path
) -> None:
    source = make_video("exact plain.mp4", "-g", "60", "-bf", "2", duration_s=12)
    found = await probe(str(source))
    plan = plan_renditions(found)
    rung, sound = plan.video[-1], plan.audio[0]
    upload = SegmentUpload(sink, work_dir, video_names={rung.name})
    names = [rung.name, sound.name]
    for name in names:
        (work_dir / name).mkdir(parents=True)

    async with task_group() as tasks:
        copying = tasks.create_task(
            remux(
                str(source),
                video=TrackCopy(index=found.video.index, name=rung.name),
                audio=[TrackCopy(index=sound.index, name=sound.name)],
                work_dir=work_dir,
                on_progress=ignore,
                paused=upload.paused,
                timeout_s=60,
            )
        )
        tasks.create_task(upload.follow(copying, names))

    playlists = await read_playlists(upload, names)
    facts = [upload.facts[f"{rung.name}/{each.uri}"] for each in playlists[rung.name].segments]
    assert is_copy_usable(playlists[rung.name], facts, found)
    await check_decoding(work_dir, names)
    target_s = shared_target_s(playlists)
    video = await finish_video(rung, playlists[rung.name], upload, target_s=target_s)
    audio = await finish_audio(sound, playlists[sound.name], upload, target_s=target_s)
    assert (video.segment_count, audio.segment_count, target_s) == (3, 3, 4)
    assert video.codecs.startswith("avc1.")
    assert playlist(sink.folder, rung.name).starts_s == playlists[rung.name].starts_s
