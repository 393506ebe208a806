"""What the commands do: they read what comes in, talk to a system through the client, and show what comes of it.

They know the rooms input/ and terminal/ and the client; one knows another only for connecting to a system and for
following a debate.
"""
