"""Judged metrics at work: records in, prompts out, replies read, scores with reasons back."""
