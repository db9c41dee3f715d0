"""The embedded services of `portal up`, which runs a complete portal on one machine.

`up` starts PostgreSQL (`postgres`), the S3 server (`object_store`) and the portal's own processes,
which `portal.processes.supervisor` keeps running; `data_folder` holds their state. No other
package depends on the embedded services: web and worker only see URLs in their environment. Begin
reading at `up`.
"""
