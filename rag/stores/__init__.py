"""Texts in, the most similar chunks out."""
