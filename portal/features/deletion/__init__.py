"""Deletion of videos, which can be undone for a while."""
