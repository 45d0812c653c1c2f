"""Files in, files out; every check of what a user may hand in."""
