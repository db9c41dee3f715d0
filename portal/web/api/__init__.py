"""The JSON API: its views, its shapes, and its description for programs and people."""
