"""Pages: views that render templates, and the values that templates use."""
