"""A client of the portal's public JSON API, as `portal publish` uses it."""
