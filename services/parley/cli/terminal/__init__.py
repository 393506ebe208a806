"""What a person sees: progress, events, answers and tables as text, and how they reach the terminal and files.

It knows the client's messages and events; it knows no command, reads no input and calls no service.
"""
