"""What the user sees: progress, events, answers and tables as text, written to the terminal and to files.

It imports the client's messages and events; it imports no command, reads no input and calls no service.
"""
