"""Web process: the app, and the routes that belong to no feature. Begin with `app`.

`api` has JSON endpoints, `pages` the views of people, and `playback` the playlists.
"""
