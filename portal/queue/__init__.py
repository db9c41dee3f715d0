"""The job queue (procrastinate) for the other packages.

`enqueue` adds a job within the transaction that makes it necessary, and sets its priority. `rows`
has SQL on the queue's tables, and `app` procrastinate's app. The tasks are in `worker`.
"""
