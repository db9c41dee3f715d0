"""What routes share: the context of a process, policies, limits, problems, and shapes of JSON."""
