"""The errors of this room."""


class VerificationError(Exception):
    """A receipt, a log or an answer is not what was signed; the message says what is wrong and where, for people."""


class UnknownKeyError(VerificationError):
    """A receipt names a key that is not among the known ones: perhaps another system signed it."""


class KeyFileError(Exception):
    """A text holds no key of receipts, or keys do not fit together; the message says why."""
