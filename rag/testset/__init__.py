"""From chunks to questions with gold and reference answers."""
