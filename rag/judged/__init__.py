"""The Ragas-style metrics: prompts, replies, scores."""
