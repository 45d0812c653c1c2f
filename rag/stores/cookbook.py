"""The stores as the cookbook's published run has them: the same chunks, embedded as another text."""

from rag.stores.vector_db import SummaryIndexedVectorDB, VectorDB
from rag.types import Chunk


class CookbookVectorDB(VectorDB):
    """The cookbook's store of level 1: the same fields under its labels."""

    def text(self, chunk: Chunk) -> str:
        """Return the text that the cookbook embeds for a chunk."""
        return f"Heading: {chunk['chunk_heading']}\n\n Chunk Text:{chunk['text']}"


class CookbookSummaryDB(SummaryIndexedVectorDB):
    """The cookbook's store of level 2: the summary last, where the embedder's limit may cut it off."""

    fields = ("chunk_heading", "text", "summary")
