"""Decide what is made of a source. Pure: the same probe gives the same plan."""
