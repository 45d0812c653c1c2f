"""To promptfoo and back: an export of a run, its results read."""
