"""The Claude Cookbook's RAG guide: its files, its recorded run, its call shapes."""
