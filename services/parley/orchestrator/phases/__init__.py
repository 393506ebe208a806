"""Phases: what agents do with each other's work. A new phase is a new module here.

They know the engine's handle and the rooms below, and no format.
"""
