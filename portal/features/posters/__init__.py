"""Posters that editors choose: a frame, or a picture of their own."""
