"""Everything between a client's connection and the framework: limits, checks, headers.

Begin with `stack`: it lists the ASGI middlewares in the order in which a request meets them.

1. `RequestContext`: the request's id, its log line and its figures
2. `SecurityHeaders`: the headers that keep browsers strict
3. `ErrorResponses`: answers what the middlewares below refuse by raising an error
4. `RequestValidation`: what is no proper HTTP is 400, 431 or 505
5. `HostCheck`: a name that is not the portal's is 421
6. `OriginCheck`: a change that another site's page asks for is 403
7. `ClientAddress`: whom the limits count the request for
8. `ConcurrencyLimit`: more requests at once than a process can work on are 503
9. `RateLimit`: a client or an account that asks too much is 429
10. `PlaybackPrefix`: takes the token out of an address with leave to watch in it

Each is an app around the next one, `(app, **settings)`, and can be left out or replaced there; they
tell each other what they know by `request_context.state_of(scope)`. Before all of them come
`connection_limit` and `http1`, the two places that reach into Hypercorn and h11; `hypercorn_config`
has Hypercorn's settings.

Limits: nothing here knows the framework, the database or storage. Counts are in the memory of one
process: with several web processes each has its own.
"""
