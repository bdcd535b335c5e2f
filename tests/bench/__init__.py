"""`make bench`: measures the shipped functions beside their peers, in the same rounds."""
