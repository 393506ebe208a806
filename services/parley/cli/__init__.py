"""The `parley` command. Imports wait until a command needs them, so that the command answers at once.

It knows the client and the file that a person writes; of the services it knows `parley.local`, which starts them.
"""
