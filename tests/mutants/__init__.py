"""Mutation testing: the code is changed a little, and a test should notice. `docs/guides/mutants.md` says how to read it."""
