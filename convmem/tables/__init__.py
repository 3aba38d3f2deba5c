"""User-shaped rows: tables that a schema.yaml describes, each in a SQLite file of its own that belongs to the user."""
