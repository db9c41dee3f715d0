"""Web process: the app, the JSON API, the pages, and playback. Only this package imports Quart.

Begin with `app`. `server` has the checks that precede every view, `schemas` the shapes of requests,
`api` the JSON endpoints, and `pages` the views of people.
"""
