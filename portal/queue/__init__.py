"""The job queue (procrastinate) as the rest of the portal sees it.

`enqueue` puts a job into the queue within the transaction that makes it necessary, and decides
whose turn it is; `rows` has the queue's tables by hand; `app` is how procrastinate is used. The
tasks themselves are the worker's.
"""
