"""``python -m rag`` is the ``rag`` command."""

from rag.cli.app import main

main()
