"""Imports: files that the portal fetches from other servers and publishes."""
