"""The commands: they read their input, call a system through the client, and show the results.

They import input/, terminal/ and the client; a command imports another module of this folder only to connect and
to follow a debate.
"""
