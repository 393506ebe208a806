"""What happens in debates, sent to other systems: hooks, the durable outbox, the dispatcher, and the channels.

It knows the log, and no engine: nothing here is on a debate's way.
"""
