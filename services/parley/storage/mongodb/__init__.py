"""Documents and logs on a MongoDB replica set. Knows the ports, and no other store."""
