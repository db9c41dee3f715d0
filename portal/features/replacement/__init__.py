"""Replacement of the file of a video, and the way back to the former one."""
