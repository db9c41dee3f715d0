"""Tasks that keep a portal in order, and the report of `portal doctor --deep`.

`recovery` enqueues the work of dead workers again, `janitor` removes objects, rows and jobs that
are no longer needed, and `consistency` compares the database with storage. Begin reading at
`janitor`.
"""
