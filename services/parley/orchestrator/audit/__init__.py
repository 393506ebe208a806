"""The audit log of each tenant: acts of callers, chained by hashes, in parts of which old ones can be removed."""
