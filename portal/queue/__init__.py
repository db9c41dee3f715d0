"""The job queue (procrastinate) for the other packages.

`jobs` declares what a kind of job is, and enqueues jobs within the transaction that makes them
necessary; `priorities` orders them, and `tries` counts their tries. `rows` has SQL on the queue's
tables, and `app` procrastinate's app. The tasks are in `worker`.
"""
