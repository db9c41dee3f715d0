"""Use cases about a video: publish, edit, delete, find, choose a poster, report its progress.

They own their transactions, and take and return models and frozen values. Begin with `publishing`.
"""
