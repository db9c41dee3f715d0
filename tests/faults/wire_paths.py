"""Paths, queries and hosts as bytes with their answers, and connections without a request."""

from wire_cases import all_answered, chunked, get, line, post

MIB = 1024**2
NO_VIDEO = "00000000-0000-4000-8000-000000000000"
PATHS = {
    **all_answered(
        404,
        **{
            f"path {number}": get(path)
            for number, path in enumerate(
                (
                    *("/../upload", "/static/../upload", "/static/%2e%2e/%2e%2e/pyproject.toml"),
                    *("/static/..%2f..%2fpyproject.toml", "/static/..%5c..%5cpyproject.toml"),
                    *("/static/%00", "/static/app.js%00.css", "/static/" + "a" * 300),
                    *("/static/.", "/static/..", "/static/%ff%fe", "/static//etc/passwd"),
                    *("/static/%252e%252e/x", "/..;/upload", "/upload;a=b", "/upload/..;/"),
                    *("/%2e%2e/upload", "/upload%20", "/upload%00", "/UPLOAD", "/upload\\"),
                    *("/upload/", "/upload/.", "/./upload/x", "/api//categories", "/api/./videos"),
                    *("/api/categories/", "/api/categories%2f", "/api/categories%0d%0aX:y"),
                    *("/api/videos/%ff", "/api/videos/%ed%a0%80", "/api/videos/%00"),
                    *("/api/videos/" + "9" * 5_000, "/api/videos/" + NO_VIDEO.upper() + "a"),
                    *("/api/uploads/%00", "/api/uploads/..%2f", "/api/uploads/" + "f" * 5_000),
                    f"/hls/{NO_VIDEO}/1/master.m3u8",
                    f"/hls/{NO_VIDEO}/{'9' * 30}/master.m3u8",
                    f"/hls/{NO_VIDEO}/{'9' * 5_000}/master.m3u8",
                    f"/hls/{NO_VIDEO}/-1/master.m3u8",
                    f"/hls/{NO_VIDEO}/1/../../../x.m3u8",
                    f"/hls/{NO_VIDEO}/1/%2e%2e/x.m3u8",
                    f"/hls/{NO_VIDEO}/1/a%0ab.m3u8",
                    f"/embed/{NO_VIDEO}%0a",
                    *("/embed/%00", "/videos/%ff/poster.jpg", "/videos/%E2%80%AEabc"),
                    *("/%", "/%zz", "/%c0%ae%c0%ae/", "/%u002e/", "/%f0%28%8c%28", "/.git/config"),
                    *("/.env", "/wp-login.php", "/%EF%BC%8E%EF%BC%8E/", "/a" * 3_000, "/*"),
                )
            )
        },
    ),
    **all_answered(
        200,
        **{
            f"query {number}": get(path)
            for number, path in enumerate(
                (
                    "/?q=%00%ff%ed%a0%80",
                    *("/?after=0-" + "0" * 32 + "-" + "9" * 5_000, "/?after=" + "-" * 500),
                    *("/?after=0-" + "0" * 32 + f"-{it}" for it in (-(10**14), 253402300799999999)),
                    "/?sort=longest&after=0-" + "0" * 32 + "-1e308",
                    "/?sort=title&after=0-" + "0" * 32 + "-%27%5c%00%ff",
                    *("/?category=" + "9" * 5_000, "/?category=%d9%a1", "/?tag=%27%3b--%5c"),
                    *("/?q=" + "a%20" * 3_000, "/?q=%27%20%7c%20!%26*():%3c->"),
                    *("/?" + "a=b&" * 3_000, "/?q=%22%5c%27%27", "/?sort=%00&status=%ff"),
                    *("/healthz?%", "/?=&&=;", "/?%00"),
                    "/library/progress?id=" + "&id=".join(["x"] * 500),
                    *("//healthz", "///healthz"),
                )
            )
        },
    ),
    **all_answered(
        400,
        no_address=get("/oembed?url=http://["),
        a_width_of_other_digits=get("/oembed?url=x&maxwidth=%d9%a1"),
        a_width_of_5_000_digits=get("/oembed?url=x&maxwidth=" + "9" * 5_000),
    ),
}
# As RFC 9112 section 3.2 forbids them; some are names that no DNS can hold.
MALFORMED_HOSTS = (
    *("a..b", ".", "..", ".a", "a" * 64, "a." + "b" * 64 + ".c", "a" * 63 + "." + "b.c" * 400),
    *(f"{'a.' * 130}example", "l\xf6calhost", "\xff", "%6cocalhost", "a b<script>", "a,b"),
    *("localhost@evil.example", "localhost/evil", "localhost?a", "localhost#a", "a\\b", "*"),
    *("localhost:x", "localhost:", "localhost:-1", "localhost:99999", "localhost:123456", ":80"),
    *("localhost:80:80", "[::1", "::1", "[::1]x", "[::g]", "[1..2]", "[]", "http://localhost"),
)
HOSTS = all_answered(
    400,
    **{
        f"{path} {number}: {host[:30]!r}": line(f"GET {path} HTTP/1.1", host=f"Host: {host}")
        for path in ("/healthz", "/", "/api/categories", "/static/x.js", "/nothing")
        for number, host in enumerate(MALFORMED_HOSTS)
    },
)
# What never comes to its end, or makes no sense; no answer is waited for.
CONNECTIONS = {
    "a line that never ends": b"GET / HT",
    "a body that never comes": post(b"", "Content-Length: 50"),
    "a chunk that never comes": chunked(b"7FFFFFFF\r\n{}"),
    "a chunk size that never ends": chunked(b"F" * 20),
    "carriage returns alone": b"GET / HTTP/1.1\rHost: localhost\r\r",
    "nothing": b"",
    "a megabyte of NUL": bytes(MIB),
}
