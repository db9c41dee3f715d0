"""Everything `portal up` brings along for one machine: database, storage, supervised processes.

`services` starts PostgreSQL and the S3 server, `up` runs them with the portal's own processes,
`children` keeps processes running. Nothing outside of this package depends on them being there:
the web and the worker only see addresses in their environment.
"""
