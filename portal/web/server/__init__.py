"""How requests are served: the server, its limits, and what holds for every request and answer."""
