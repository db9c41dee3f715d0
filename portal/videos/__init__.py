"""Videos as such: publishing, editing, finding, permission to see one, progress.

The use cases own their transactions, and take and return models and frozen values. Begin with
`publishing`. What people do with a video beyond that is in `features`; `feature` says what one is.
"""
