"""Changes of a video's details and of its audience, by forms and by the API."""
