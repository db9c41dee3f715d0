"""Everything `portal up` brings along for one machine: database, storage, supervised processes.

`up` starts PostgreSQL (`postgres`) and the S3 server (`object_store`), and runs them with the
portal's own processes, kept running by `portal.processes.supervisor`; `data_folder` is where their
state lies. Nothing outside of this package depends on them being there: the web and the worker
only see addresses in their environment. Begin reading at `up`.
"""
