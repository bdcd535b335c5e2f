"""Lets LocalStack run functions of provided.* runtimes without Docker and without downloads."""
