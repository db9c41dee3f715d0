"""Everything `portal up` brings along for one machine: database, storage, supervised processes.

`services` starts PostgreSQL and the S3 server, `up` runs them with the portal's own processes,
`children` keeps processes running. Nothing outside of this package depends on them being there:
the web and the worker only see addresses in their environment.
"""

from portal.embedded.datafolder import load_environment
from portal.embedded.services import embedded_services

__all__ = ["embedded_services", "load_environment"]
