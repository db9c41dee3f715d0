"""Playback links to private videos, as the API makes and revokes them."""
