"""What a portal tells its operators of itself: logs, metrics, traces."""
