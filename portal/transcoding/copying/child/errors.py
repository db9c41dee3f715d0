"""How a copy ends early, told apart for the parent."""


class Undeliverable(Exception):
    """The stream can't be delivered as it is. `reason` is one short word for programs."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"{reason}: {detail}")


class NotWritten(Exception):
    """A file could not be written, for which `cause` is the reason."""

    def __init__(self, cause: OSError) -> None:
        self.cause = cause
        super().__init__(str(cause))
