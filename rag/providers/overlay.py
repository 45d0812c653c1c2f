"""What a dry run takes for replies: a cache over another one, which stays as it is."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rag.providers.cache import Cache


class Overlay(Cache):
    """A cache over another one.

    ``made`` holds the keys that stand only here; ``guessed`` the questions and chunks of which something was taken for
    granted, so that what is asked about them later may be asked otherwise, None standing for all of them.
    """

    def __init__(self, under: Cache) -> None:
        super().__init__()
        self.under = under
        self.made: set[str] = set()
        self.guessed: set[str | None] = set()

    def put(self, rows: Sequence[tuple[str, str, str, str, bytes]]) -> None:
        """Do as `Cache.put` does, and remember what was put."""
        self.made.update(row[0] for row in rows)
        super().put(rows)

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Forget at the end of the block what was put and guessed in it; blocks may stand in one another."""
        made, guessed = set(self.made), set(self.guessed)
        self._db.execute("SAVEPOINT block")
        try:
            yield
        finally:
            self._db.execute("ROLLBACK TO block")
            self._db.execute("RELEASE block")
            self.made, self.guessed = made, guessed

    def doubts(self, subject: str) -> bool:
        """Tell whether a prompt about a question or chunk rests on something that was taken for granted."""
        return None in self.guessed or subject in self.guessed

    def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values of the keys that are in either."""
        return {**self.under.peek(keys), **super().get(keys)}

    def example(self, role: str, model: str) -> bytes | None:
        """Return one of the values of a role and model in either."""
        below = self.under.example(role, model) if self.under.is_there else None
        return super().example(role, model) or below
