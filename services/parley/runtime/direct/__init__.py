"""Calls between services of one process, without a socket: to servicer and caller they are calls over gRPC."""
