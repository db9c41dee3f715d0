"""What workers do: jobs, attempts under leases, passes over a source, and tidying up."""
