"""The use cases about a video: publish, edit, delete, find, choose a poster, tell its progress.

They own their transactions, and take and give models and frozen values.
"""
