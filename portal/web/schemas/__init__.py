"""Shapes of requests and answers that pages and the JSON API share, and their validation.

`base` has what shapes consist of, `validation` turns faults into field errors. A shape that only
one module of the API uses stands beside its routes.
"""
