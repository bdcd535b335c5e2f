"""`make soak`: checks the deployed stack's invariants under faults for an hour."""
