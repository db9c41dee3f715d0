"""The worker process. A task's body (`tasks`) calls one service; `run` opens and ends it all."""
