"""Documents and logs in one SQLite file, embedded in the process. Knows the ports, and no other store."""
