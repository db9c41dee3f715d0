"""What keeps a portal in order: recovery, the janitor, and `portal doctor --deep`.

`recovery` queues again what a dead worker left behind, `janitor` removes what nobody needs any
more, `consistency` compares the database with storage and repairs what differs.
"""
