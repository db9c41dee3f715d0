"""Events: what happened to videos, as a list and as a stream."""
