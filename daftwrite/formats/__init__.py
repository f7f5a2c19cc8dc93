"""File formats: encoding row groups, and assembling them into files."""
