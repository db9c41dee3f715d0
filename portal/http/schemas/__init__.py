"""Shapes of requests and answers that pages and the JSON API share, and their validation.

`base` has the parts of shapes; `validation` turns faults into field errors. Shapes that only one
module of the API uses are in that module.
"""
