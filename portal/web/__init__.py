"""The web process: the app, the JSON API, the pages, and playback. Quart is imported here alone.

Begin with `app`. `server` holds what every request meets before the app does, `api` the JSON
endpoints and their shapes, `pages` what people see.
"""
