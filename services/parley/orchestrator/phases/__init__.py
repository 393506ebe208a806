"""Phases: what agents do with each other's work. A new phase is a new module here."""
