"""A self-hosted video publishing portal: upload, transcode to adaptive HLS, watch."""

__version__ = "0.5.0"
