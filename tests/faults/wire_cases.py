"""Requests as bytes with the statuses that answer them; `wire_paths.py` has paths and hosts."""

from dataclasses import dataclass

JSON = "Content-Type: application/json"
GOOD = b'{"fileName": "a.mp4", "contentType": "video/mp4"}'


@dataclass(frozen=True, slots=True)
class Case:
    """What is sent, and how it is answered; several statuses when it holds several requests."""

    data: bytes
    statuses: tuple[int, ...]


def line(text: str | bytes, *headers: str, host: str = "Host: localhost") -> bytes:
    """A request without a body, by its first line."""
    first = text if isinstance(text, bytes) else text.encode()
    return b"\r\n".join([first, *(it.encode("latin-1") for it in (host, *headers)), b"", b""])


def get(path: str, *headers: str) -> bytes:
    return line(f"GET {path} HTTP/1.1", *headers)


def post(body: bytes, *headers: str) -> bytes:
    return line("POST /api/videos/presign HTTP/1.1", JSON, *headers) + body


def sized(body: bytes) -> bytes:
    """With the length that it has."""
    return post(body, f"Content-Length: {len(body)}")


def typed(*content_type: str) -> bytes:
    """With this type of content, or none."""
    return line("POST /api/videos/presign HTTP/1.1", *content_type, "Content-Length: 2") + b"{}"


def chunked(body: bytes) -> bytes:
    return post(body, "Transfer-Encoding: chunked")


def all_answered(status: int, **cases: bytes) -> dict[str, Case]:
    return {name.replace("_", " "): Case(data, (status,)) for name, data in cases.items()}


# HTTP/2 in clear text, as a client begins it that knows, or asks, whether it is spoken.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
UPGRADE = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c")

REQUEST_LINES = {
    **all_answered(
        400,
        empty_lines=b"\r\n\r\n",
        control_characters=b"\x00\x01\x02\x03\r\n\r\n",
        a_greeting_of_tls=b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n" * 40,
        no_version=b"GET /\r\n\r\n",
        words_after_the_version=line("GET / HTTP/1.1 x"),
        a_version_in_words=line("GET / HTTP/one"),
        no_protocol=line("GET / 1.1"),
        lower_case_protocol=line("GET / http/1.1"),
        two_spaces=line("GET  / HTTP/1.1"),
        a_tab=line("GET\t/\tHTTP/1.1"),
        a_space_in_the_target=line("GET /a b HTTP/1.1"),
        NUL_in_the_target=line(b"GET /\0 HTTP/1.1"),
        a_control_character_in_the_target=line(b"GET /\x1b[2J HTTP/1.1"),
        bytes_beyond_ASCII_in_the_target=line("GET /é HTTP/1.1"),
        a_method_of_signs=line("G@T / HTTP/1.1"),
        a_method_with_a_colon=line("GET: / HTTP/1.1"),
        no_method=line(" / HTTP/1.1"),
        a_target_that_is_no_path=line("GET foo HTTP/1.1"),
        a_target_of_a_query_alone=line("GET ?a=b HTTP/1.1"),
        an_asterisk=line("OPTIONS * HTTP/1.1"),
        a_host_and_port=line("CONNECT evil.example:443 HTTP/1.1"),
        another_scheme=line("GET file:///etc/passwd HTTP/1.1"),
        a_scheme_of_words=line("GET javascript:alert(1) HTTP/1.1"),
        a_host_without_an_end=line("GET http://[/ HTTP/1.1"),
        empty_lines_before=b"\r\n" + get("/healthz"),
        a_broken_address=line("GET http://[::1/x HTTP/1.1"),
        line_feeds_alone=b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
        a_line_feed_alone_after_the_first_line=b"GET /healthz HTTP/1.1\nHost: localhost\r\n\r\n",
        a_line_feed_alone_before_any_line=b"\n" + get("/healthz"),
    ),
    **all_answered(
        505,
        version_2_0=line("GET / HTTP/2.0"),
        version_3_0=line("GET / HTTP/3.0"),
        version_9_9=line("GET / HTTP/9.9"),
        version_0_9=line("GET / HTTP/0.9"),
        the_preface_of_HTTP_2=PREFACE,
        the_preface_and_settings=PREFACE + bytes.fromhex("000000040000000000"),
        the_preface_and_rubbish=PREFACE + b"\xff" * 10_000,
        half_a_preface=PREFACE[:18] + b"XX\r\n\r\n",
    ),
    **all_answered(
        405,
        TRACE=line("TRACE / HTTP/1.1"),
        CONNECT=line("CONNECT / HTTP/1.1"),
        a_method_of_its_own=line("FOO /api/categories HTTP/1.1"),
        PROPFIND=line("PROPFIND /api/categories HTTP/1.1"),
        DEBUG=line("DEBUG /upload HTTP/1.1"),
        TRACK=line("TRACK /upload HTTP/1.1"),
        a_long_method=line("A" * 5_000 + " /api/categories HTTP/1.1"),
        lower_case_delete=line("delete /api/categories HTTP/1.1"),
    ),
    **all_answered(
        200,
        lower_case_get=line("get /healthz HTTP/1.1"),
        version_1_0=line("GET /healthz HTTP/1.0"),
        version_1_2=line("GET /healthz HTTP/1.2"),
        a_full_address=line("GET http://evil.example/healthz HTTP/1.1"),
        a_full_address_with_a_port=line("GET HTTP://evil.example:99999999/healthz HTTP/1.1"),
        a_full_address_and_no_path=line("GET http://evil.example HTTP/1.1"),
    ),
    **all_answered(
        431,
        a_target_of_70_000_bytes=get("/" + "a" * 70_000),
        a_first_line_without_end=b"GET /" + b"a" * 200_000,
    ),
    **all_answered(404, a_target_of_15_000_bytes=get("/" + "a" * 15_000)),
}
HEADERS = {
    **all_answered(
        400,
        no_host=b"GET / HTTP/1.1\r\n\r\n",
        two_hosts=get("/", "Host: localhost"),
        two_different_hosts=get("/", "Host: evil.example"),
        NUL_in_a_value=get("/", "X: a\0b"),
        a_space_before_the_colon=get("/", "X-A : a"),
        a_tab_before_the_colon=get("/", "X-A\t: a"),
        an_empty_name=get("/", ": a"),
        no_colon=get("/", "abc"),
        a_name_of_signs=get("/", "a(b): c"),
        a_space_before_the_first_name=line("GET / HTTP/1.1", host=" Host: localhost"),
        a_carriage_return_in_a_value=get("/", "X: a\rY: b"),
        a_folded_value=get("/healthz", "X-A: a\r\n b"),
        a_value_folded_with_a_tab=get("/healthz", "X-A: a\r\n\tb"),
        a_line_folded_to_nothing=get("/healthz", "X-A: a\r\n "),
        a_folded_host=line("GET /healthz HTTP/1.1", host="Host:\r\n localhost"),
        a_line_feed_alone_after_a_value=get("/healthz", "X-A: a\nX-B: b"),
        a_line_feed_alone_before_the_end=b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n",
        a_line_feed_alone_and_a_request=get("/healthz", "X-A: a\n\nGET /healthz HTTP/1.1"),
    ),
    **all_answered(
        431,
        a_value_of_100_000_bytes=get("/healthz", "X: " + "a" * 100_000),
        nine_hundred_headers=get("/healthz", *(f"X{number}: a" for number in range(900))),
        a_header_without_end=b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000,
        a_name_without_end=b"GET / HTTP/1.1\r\n" + b"a" * 200_000,
    ),
    **all_answered(
        421,
        a_stranger_as_host=line("GET / HTTP/1.1", host="Host: evil.example"),
        a_stranger_in_HTTP_1_0=line("GET / HTTP/1.0", host="Host: evil.example"),
    ),
    **all_answered(
        200,
        an_empty_host=line("GET /healthz HTTP/1.1", host="Host:"),
        an_address_as_host=line("GET /healthz HTTP/1.1", host="Host: 127.0.0.1:65535"),
        an_address_of_IPv6_as_host=line("GET /healthz HTTP/1.1", host="Host: [::1]:8000"),
        a_host_with_a_dot_behind=line("GET /healthz HTTP/1.1", host="Host: LocalHost."),
        the_longest_label_in_a_host=line("GET /healthz HTTP/1.1", host="Host: " + "a_" * 31 + "a"),
        no_host_in_HTTP_1_0=b"GET /healthz HTTP/1.0\r\n\r\n",
        fifty_headers=get("/healthz", *(f"X{number}: a" for number in range(50))),
        bytes_beyond_ASCII=get("/healthz", "User-Agent: \xff\xfe"),
        cookies_of_nonsense=get("/upload", "Cookie: \xff=;;;=a;" + "a" * 4_000),
        a_bad_accept_header=get("/upload", "Accept: text/html;q=\xff,,;"),
        a_bad_authorization=get("/upload", 'Authorization: Digest a="b'),
        a_bad_date=get("/upload", "If-Modified-Since: Thu, 99 Foo 99999 99:99:99 GMT"),
        a_bad_tag=get("/upload", 'If-None-Match: "\xff, W/, *'),
        a_bad_range=get("/upload", "Range: bytes=" + "9" * 4_400 + "-"),
        many_ranges=get("/upload", "Range: bytes=" + ",".join(["0-1"] * 2_000)),
        other_addresses=get("/healthz", "X-Original-URL: /upload", "X-Rewrite-URL: /upload"),
        a_request_id_to_inject=get("/healthz", "X-Request-ID: a b\t<script>"),
        an_upgrade_to_HTTP_2=get("/healthz", *UPGRADE, "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"),
        an_upgrade_with_broken_settings=get("/healthz", *UPGRADE, "HTTP2-Settings: !!!!"),
        an_upgrade_without_settings=get("/healthz", *UPGRADE),
        an_upgrade_to_nothing=get("/healthz", "Connection: Upgrade", "Upgrade: foo"),
        a_name_of_the_connection=get("/healthz", "Connection: host, content-length"),
    ),
    **all_answered(
        403,
        a_web_socket=get(
            "/healthz",
            *("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"),
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ),
    ),
    "a web socket without a key": Case(
        get("/healthz", "Connection: Upgrade", "Upgrade: websocket"), (400,)
    ),
}
FRAMING = {
    "a request, and one of bare line feeds": Case(
        get("/healthz") + b"GET /healthz HTTP/1.1\nHost: localhost\n\n", (200, 400)
    ),
    "chunks, and a folded request": Case(
        chunked(b"31\r\n" + GOOD + b"\r\n0\r\n\r\n") + get("/healthz", "X-A: a\r\n b"), (200, 400)
    ),
    "line feeds in a body": Case(sized(GOOD.replace(b",", b",\n \n\t")), (200,)),
    **all_answered(
        400,
        both_lengths=post(b"0\r\n\r\n", "Content-Length: 5", "Transfer-Encoding: chunked"),
        both_lengths_the_other_way=post(GOOD, "Transfer-Encoding: chunked", "Content-Length: 49"),
        two_lengths=post(b"{}", "Content-Length: 2", "Content-Length: 3"),
        a_list_of_lengths=post(b"{}", "Content-Length: 2, 3"),
        a_negative_length=post(b"{}", "Content-Length: -1"),
        a_length_with_a_plus=post(b"{}", "Content-Length: +2"),
        a_length_in_hexadecimal=post(b"{}", "Content-Length: 0x2"),
        a_length_with_an_underscore=post(b"{}", "Content-Length: 1_0"),
        a_length_in_words=post(b"{}", "Content-Length: two"),
        an_empty_length=post(b"{}", "Content-Length: "),
        a_length_of_5_000_digits=post(b"{}", "Content-Length: " + "9" * 5_000),
        a_length_in_other_digits=post(b"{}", "Content-Length: \xb2"),
        a_coding_behind_a_control_character=post(b"0\r\n\r\n", "Transfer-Encoding: \x0bchunked"),
        a_chunk_size_of_28_digits=chunked(b"F" * 28 + b"\r\n{}"),
        a_negative_chunk_size=chunked(b"-2\r\n{}\r\n0\r\n\r\n"),
        a_chunk_size_with_0x=chunked(b"0x2\r\n{}\r\n0\r\n\r\n"),
        a_chunk_size_with_a_plus=chunked(b"+2\r\n{}\r\n0\r\n\r\n"),
        a_chunk_that_is_longer_than_said=chunked(b"2\r\n{}XX0\r\n\r\n"),
        a_folded_trailer=chunked(b"31\r\n" + GOOD + b"\r\n0\r\nX: a\r\n b\r\n\r\n"),
        a_line_feed_alone_in_trailers=chunked(b"31\r\n" + GOOD + b"\r\n0\r\nX: a\n\r\n"),
        a_chunk_size_of_words=chunked(b"zz\r\n{}\r\n0\r\n\r\n"),
        chunks_in_HTTP_1_0=line(
            "POST /api/videos/presign HTTP/1.0", JSON, "Transfer-Encoding: chunked"
        )
        + b"0\r\n\r\n",
    ),
    **all_answered(
        501,
        another_coding=post(b"0\r\n\r\n", "Transfer-Encoding: xchunked"),
        two_codings=post(b"0\r\n\r\n", "Transfer-Encoding: gzip, chunked"),
        chunked_twice=post(b"0\r\n\r\n", "Transfer-Encoding: chunked, chunked"),
        chunked_and_identity=post(
            b"0\r\n\r\n", "Transfer-Encoding: chunked", "Transfer-Encoding: identity"
        ),
    ),
    **all_answered(
        413,
        a_length_of_20_digits=post(b"{}", "Content-Length: " + "9" * 20),
        a_body_beyond_the_limit=sized(b"[" * 70_000),
        a_chunk_beyond_the_limit=chunked(b"11170\r\n" + b"[" * 70_000 + b"\r\n0\r\n\r\n"),
        many_chunks_beyond_the_limit=chunked(
            (b"1000\r\n" + b"[" * 4_096 + b"\r\n") * 20 + b"0\r\n\r\n"
        ),
    ),
    **all_answered(
        200,
        the_same_length_twice=post(GOOD, "Content-Length: 49", "Content-Length: 49"),
        a_chunk_for_every_byte=chunked(b"".join(b"1\r\n%c\r\n" % it for it in GOOD) + b"0\r\n\r\n"),
        an_extension_of_a_chunk=chunked(b'31;a="b"\r\n' + GOOD + b"\r\n0\r\n\r\n"),
        trailers=chunked(b"31\r\n" + GOOD + b"\r\n0\r\nHost: evil.example\r\n\r\n"),
        a_body_to_a_question=get("/healthz", "Content-Length: 5") + b"hello",
    ),
    "a body to a question, and another": Case(
        get("/healthz", "Content-Length: 5") + b"hello" + get("/nothing"), (200, 404)
    ),
    "an expectation": Case(post(GOOD, "Content-Length: 49", "Expect: 100-continue"), (100, 200)),
    "another expectation": Case(post(GOOD, "Content-Length: 49", "Expect: tea"), (200,)),
}
DEEP = 30_000
BODIES = {
    **all_answered(
        400,
        nested_arrays=sized(b"[" * DEEP + b"]" * DEEP),
        nested_objects=sized(b'{"a":' * 10_000 + b"1" + b"}" * 10_000),
        nested_and_never_closed=sized(b"[" * 60_000),
        objects_in_arrays=sized(b'[{"":' * 10_000),
        invalid_UTF_8=sized(b'{"fileName": "\xff\xfe.mp4"}'),
        overlong_UTF_8=sized(b'{"fileName": "\xc0\xae.mp4"}'),
        surrogates_in_UTF_8=sized(b'{"fileName": "\xed\xa0\x80.mp4"}'),
        UTF_16=sized(GOOD.decode().encode("utf-16")),
        UTF_7=sized(b"+AHs-+AH0-"),
        NUL=sized(b"\0" * 1000),
        not_a_number=sized(b'{"fileName": NaN}'),
        comments=sized(b"/* */ {}"),
        two_documents=sized(GOOD + GOOD),
        nothing=sized(b""),
    ),
    **all_answered(
        422,
        a_lone_surrogate=sized(rb'{"fileName": "\ud800.mp4", "contentType": "video/mp4"}'),
        an_escaped_NUL=sized(rb'{"fileName": "\u0000.mp4", "contentType": "video/mp4"}'),
        line_ends_in_a_name=sized(rb'{"fileName": "a\r\nX: y.mp4", "contentType": "video/mp4"}'),
        a_path_in_a_name=sized(rb'{"fileName": "../../a.mp4", "contentType": "video/mp4"}'),
        a_number_of_20_000_digits=sized(b'{"fileName": ' + b"9" * 20_000 + b"}"),
        a_number_beyond_any=sized(b'{"fileName": 1e99999}'),
        ten_thousand_members=sized(b"{" + b",".join([b'"":1'] * 10_000) + b"}"),
        a_string_of_60_000_characters=sized(b'{"fileName": "' + b"a" * 60_000 + b'"}'),
        members_with_names_of_their_class=sized(b'{"__class__": {}, "__proto__": {"a": 1}}'),
        an_array=sized(b"[]"),
    ),
    **all_answered(413, a_hundred_thousand_levels=sized(b"[" * 100_000 + b"]" * 100_000)),
    **all_answered(
        200,
        the_same_member_many_times=sized(b"{" + b'"fileName": "x",' * 1_000 + GOOD[1:]),
        members_of_no_meaning=sized(b'{"__proto__": {"admin": true}, "": null,' + GOOD[1:]),
        blanks_around_it=sized(GOOD.center(60_000)),
    ),
    **all_answered(
        415,
        a_form=typed("Content-Type: text/plain"),
        a_type_beyond_ASCII=typed("Content-Type: \xff"),
        no_type=typed(),
    ),
}
