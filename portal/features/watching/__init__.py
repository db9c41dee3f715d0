"""Watching: the page of a video, its player on other sites, its streams, and saved positions."""
