"""Deploys the template to an AWS emulator on this machine and watches it work."""
