"""`make soak`: the deployed stack under faults for an hour, held to what must always be true."""
