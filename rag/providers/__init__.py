"""Who does the work: embedders and language models behind small Protocols."""
