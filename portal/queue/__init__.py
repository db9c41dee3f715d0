"""The job queue (procrastinate) as the rest of the portal sees it.

`enqueue` puts a job into the queue within the transaction that makes it necessary, `priority`
decides whose turn it is, `rows` reads how the queue stands. The tasks themselves are the worker's.
"""
