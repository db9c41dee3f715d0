"""Compares database and storage, both ways, and repairs what differs: `portal doctor --deep`.

`compare` runs the comparisons of `sources`, `outputs` and `jobs`; `findings` counts what they
find, `repairs` are the ways back. Both sides are read in order, a page at a time; the most that is
held at once is one video's list of objects. A portal may go on working meanwhile: what looks wrong
is looked at again before it is reported.
"""
