"""`make bench`: the shipped functions measured beside their peers, in the same rounds."""
