"""The worker process: the queue's tasks. A task's body calls one service."""
