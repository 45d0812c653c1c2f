"""Where a stand-in runs on the cookbook's own data: its accuracy beside the published one, as not comparable."""

from collections.abc import Sequence

from rag.evaluation.run import Run
from rag.stages.judge import OVERLAP

CORPUS = "c853e3d1041dcba6246a311c4d674d5879952d594e8f9e6baed7338c222f5b46"  # the fingerprint of its 232 chunks
ACCURACY = {"basic": 0.71, "summary": 0.79, "rerank": 0.81}  # evaluation/json_results, end_to_end_accuracy


def beside_published(runs: Sequence[Run]) -> list[str]:
    """Return a sentence for each run of a published level on the cookbook's corpus that no model has judged."""
    return [
        f"{run.level}: published accuracy {ACCURACY[run.level]:.2f}, by claude-3-5-sonnet-20241022; the one above is"
        f" by {OVERLAP.name} of quoted sentences: not comparable"
        for run in runs
        if run.level in ACCURACY and run.card.get("judge") == OVERLAP.name and _corpus(run) == CORPUS
    ]


def _corpus(run: Run) -> str | None:
    prints: dict[str, str] = run.card.get("fingerprints") or {}
    return prints.get("corpus")
