"""What every request meets before its view does: context, headers, checks, limits.

Two ASGI middlewares are around the framework: `context.RequestContext` (the request's id, its
client, its log line and its figures) and `headers.SecurityHeaders`. The checks run inside of it
before each view, in the order in which `app` lists them: `origins.check_origin` (a name that is not
the portal's is 421, a change that another site's page asks for 403), `limits.ConcurrencyLimit`
(503), the route's policy, and `limits.RateLimit` (429). They raise errors, which are rendered where
all errors are. `limits` has the limit on bodies, too.

Limits: nothing here knows the database or storage. Counts are in the memory of one process: with
several web processes each has its own. What a crowd or an attacker does to connections is for the
proxy in front: see `docs/deploy`.
"""
