"""What goes wrong where something is read for a debate."""


class FetchError(Exception):
    """A page was not read; the message says why, in one line."""
