"""Lets LocalStack run functions with provided.* runtimes without Docker and without downloads."""
