"""Hostile input for forms, and videos with it, for tests of every place that shows it."""

import json

from page_rows import READY, make_rendition, make_row

from portal.database.connection import execute
from portal.database.models import Caption, Video, VideoStatus
from portal.transcoding.packaging.master import Kind

# A request to this host means that a text was interpreted as markup.
ELSEWHERE = "elsewhere.invalid"
MARKUP = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    '" autofocus onfocus="alert(1)" x="',
    "' onmouseover='alert(1)",
    "` onclick=alert(1) `",
    "<!-- --!><script>alert(1)</script> -->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)",
    f"<img src=//{ELSEWHERE}/x.png>",
    f"<link rel=stylesheet href=//{ELSEWHERE}/x.css>",
    f"<base href=//{ELSEWHERE}/>",
    f'<meta http-equiv=refresh content="0;url=//{ELSEWHERE}/">',
    f"<iframe src=//{ELSEWHERE}/></iframe>",
    f'<div hx-get="//{ELSEWHERE}/" hx-trigger="load">',
    "<style>*{display:none}</style>",
    "<form action=javascript:alert(1)><button autofocus>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "{{ 7*7 }}{% raw %}${7*7}#{7*7}",
)
LINKS = (
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)//https://portal.example/",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:msgbox(1)",
    'https://portal.example/"onmouseover="alert(1)',
    "https://portal.example/'><script>alert(1)</script>",
    "https://user@evil.example/",
    "https://portal.example\\@evil.example/",
    "https://portal.example/\u202egnp.exe",
    "file:///etc/passwd",
    "//evil.example/",
    "https://[::1",
)
DIRECTIONS = (
    "holiday\u202egpj.exe",
    "\u2066\u2067\u202dabc",
    "abc\u2069\u202e def \u202c\u2069",
    "\u0645\u0631\u062d\u0628\u0627\u202b world",
)
ODDITIES = (
    "Z" + "\u0335\u0321\u0341" * 60,
    "\u200b\u200d\u2060\ufeffinvisible\u00ad",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\U0001f3f4\U000e0067\U000e007f",
    "\U0001d573\U00020bb7\U0010ffff\ufffe\uffff",
    "a\r\nSet-Cookie: x=1\r\n\r\n<b>",
    "\x1b[2J\x1b]0;title\x07\x08\x7f\x85\u2028\u2029",
    "../../../etc/passwd\\..\\%00%0d%0a",
    "ﷺ" * 20,
    "a" * 190,
)
ALL = (*MARKUP, *LINKS, *DIRECTIONS, *ODDITIES)
# Titles, of at most 200 characters, that contain all hostile texts.
TITLES = (
    "".join(MARKUP[:6]),
    "".join(MARKUP[6:14])[:200],
    "".join(MARKUP[14:])[:200],
    "".join(LINKS)[:200],
    "".join(DIRECTIONS),
    "".join(ODDITIES[:4])[:200],
    "".join(ODDITIES[4:7])[:200],
    ODDITIES[-1],
)
TEXTS = {
    "description": "\n".join(ALL),
    "tags": ", ".join(("<script>alert(1)</script>", '"onclick="alert(1)', DIRECTIONS[1])),
    "file_name": "\u202e<img src=x onerror=alert(1)>\"'gpj.mp4",
}
CHAPTERS = "INSERT INTO chapters (video_id, saved) VALUES (%s, %s::jsonb)"


async def make_hostile_videos() -> tuple[list[Video], Video, Video]:
    """Create a waiting video for each title, a failed and a ready one, all with hostile texts.

    The captions are such as the portal would refuse or clean if they were uploaded.
    """
    waiting = [
        await make_row(number, title=title, **TEXTS) for number, title in enumerate(TITLES, 1)
    ]
    failure = {"failure_code": "damaged", "failure_message": "".join(MARKUP)}
    failed = await make_row(20, title=TITLES[0], status=VideoStatus.FAILED, **failure, **TEXTS)
    ready = await make_row(21, title=TITLES[0], has_storyboard=True, **READY, **TEXTS)
    label = "".join(MARKUP)
    await make_rendition(ready, "1", kind=Kind.AUDIO, label=label)
    cues = [
        f"00:00:{start_s:02}.000 --> 00:01:00.000\n{text}\n\n"
        for start_s, text in enumerate(MARKUP)
    ]
    await Caption.create(
        video=ready,
        language="en",
        label=label,
        is_default=True,
        source="file",
        text=f"WEBVTT\n\n{''.join(cues)}",
        cue_count=len(MARKUP),
    )
    chapters = [{"start_s": float(start_s), "title": text} for start_s, text in enumerate(MARKUP)]
    await execute(CHAPTERS, ready.id, json.dumps(chapters))
    return waiting, failed, ready
