"""Handling of every request before its view: context, headers, checks and limits.

Two ASGI middlewares wrap the framework: `context.RequestContext` (the request's id, client, log
line and metrics) and `headers.SecurityHeaders`. Inside them, before each view, `app` runs the
checks in this order: `origins.check_origin` (421 for an unknown host name, 403 for a change by
another site's page), `limits.ConcurrencyLimit` (503), the route's policy, and `limits.RateLimit`
(429). A check raises an error, which is rendered like all others. `limits` also limits bodies.

This package knows no database and no storage. Counts are in the memory of one process: with several
web processes each has its own. The proxy in front handles crowds and attacks on connections: see
`docs/deploy`.
"""
