"""Downloads: the uploaded file, and files that are joined from segments on demand."""
