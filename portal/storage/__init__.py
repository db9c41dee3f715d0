"""Object storage, as S3 has it. Media bytes of uploads never pass through here."""
