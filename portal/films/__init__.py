"""Films: versions of videos, and the passes that make their renditions.

Begin with `passes`: each pass is one job of the queue. It asks a `Maker` for renditions:
`whole_films` copies and encodes, `cutting` makes cuts of a film's segments. `encoding` encodes in
parts (`parts`), which workers share. `attempts` has the leases, `renditions` the rows, `versions`
what viewers get.
"""
