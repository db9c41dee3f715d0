"""Examine an untrusted source in a confined child process, and refuse it or return its facts.

Begin with `probe`, the parent's side: it starts the child, interprets its answer (`facts`) and
refuses sources. The child's side is `__main__`, run by `python -I -m` with the name of this
package. There `source`, `tracks` and `sample_index` read a file by FFmpeg, and `boxes` reads facts
that FFmpeg doesn't report; `edits` and `shown_picture` interpret what is shown, and how. The child
imports nothing of the portal outside this package, so that it starts fast and has few secrets. Both
sides use `cuts`, which decides where copied streams are cut.

Limits: MP4 and QuickTime; an http(s) address or an absolute path; a bounded number of reads. The
package imports only `processes`, `text` and the errors of transcoding.
"""
