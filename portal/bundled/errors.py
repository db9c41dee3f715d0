"""What `portal up` tells when it ends early."""

from typing import IO, Any

import click


class UpError(click.ClickException):
    """`portal up` cannot start; the message is all there is to say. Exit code 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"portal up: {self.message}", file=file, err=file is None)
