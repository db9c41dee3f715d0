"""Statistics: who watched, how far, and whether it played well.

Players report what they play in the format CMCD version 2 (CTA-5004-B). A web process reads the
reports (`cmcd`), drops those that don't count, and writes the others to an inbox (`intake`). A
worker folds the inbox every few seconds (`folding`): the reports of one visitor, video and day
become a `viewers.ViewerDay`, and its change is added to the sums of the video and of the library
(`figures`, `periods`). `reading` returns the sums to pages and the API.

A visitor is a keyed hash of address and user agent whose key is replaced daily. Viewer days are
deleted after `folding.KEEP_VIEWERS_DAYS`, sums never. Days are days of UTC. Neither requests nor
permissions are known here.
"""
