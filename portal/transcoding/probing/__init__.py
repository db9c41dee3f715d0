"""Find out what an untrusted source holds, or refuse it, in a confined child process.

Begin with `probe`, the parent's side: it starts the child, gives its answer a meaning (`facts`)
and decides what is refused. `child` is the other side, run by `python -I -m` of this package.

Limits: MP4 and QuickTime; an http(s) address or an absolute path; a bounded number of reads.
Imports of the portal only `processes`, `text` and the errors of transcoding.
"""
