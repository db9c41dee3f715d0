"""What people see: the views that render templates, and the values that templates are given."""
