"""Requests: what all routes share, whatever they are about.

Begin with `auth`, which declares and enforces the policies of routes. `composition` is the context
of a process, `server` has the checks that precede every view, `schemas` the shapes of requests,
`videos` reads the video of an address, and `errors` renders problems.
"""
