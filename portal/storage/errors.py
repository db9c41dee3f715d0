"""What storage says of a key, as exceptions that its callers expect; never shown to clients."""


class StorageCondition(Exception):
    """What storage says of a key, its argument; never shown as it is."""


class ObjectMissing(StorageCondition):
    """Storage has no object under this key."""


class StorageRefused(StorageCondition):
    """Storage refuses a request for a reason that callers do not expect; the cause has it."""


class RangeRefused(StorageCondition):
    """An object has none of the bytes asked for."""


class MultipartMissing(StorageCondition):
    """Storage does not know this multipart upload: it was completed or aborted, or got lost."""


class PartsRefused(StorageCondition):
    """Storage does not make an object of these parts."""


class ListingRefused(StorageCondition):
    """Storage does not list unfinished uploads, or not to these credentials."""
