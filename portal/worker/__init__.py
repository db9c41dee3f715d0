"""The worker process. A task's body calls one service. Begin with `run`."""
