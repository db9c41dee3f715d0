"""Publishing: uploads, new videos, and the progress of their processing."""
