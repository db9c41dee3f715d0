"""The job queue (procrastinate) as the rest of the portal sees it.

`enqueue` puts a job into the queue within the transaction that makes it necessary, `priority`
decides whose turn it is, `jobs` and `rows` do what else is done with jobs. `app` and `connector`
are how procrastinate is used. The tasks themselves are the worker's.
"""
