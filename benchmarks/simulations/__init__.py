"""What the statistics promise, simulated: a module a subject. `benchmarks/statistics.py` prints all of it."""
