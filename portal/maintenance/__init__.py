"""What keeps a portal in order unasked: the janitor, recovery, and `portal doctor --deep`.

`recovery` queues again what a dead worker left behind, `janitor` removes from storage what nobody
needs any more, `consistency` compares the database with storage and repairs what differs.
"""
