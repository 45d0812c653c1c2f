"""What is timed and simulated; each file is a command of its own."""
