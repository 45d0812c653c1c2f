"""Markdown, HTML and plain text to chunks."""
