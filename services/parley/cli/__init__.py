"""The `parley` command. Imports wait until a command needs them, so that the command answers at once."""
