"""The published files by their SHA-256: what is read is compared with it first.

Source: github.com/anthropics/claude-cookbooks, folder skills/retrieval_augmented_generation, at the commit below.
"""

import hashlib
from pathlib import Path

COMMIT = "4b36a1e1f64361397f4cbe4fbc7cdace338f16f8"
PUBLISHED = {
    "guide.ipynb": "1b6858383f0896fc994416230a9ba859302871b17e3bb8a0b8557d60edb3d231",
    "data/anthropic_docs.json": "8e2b9961dfdf22092f5b326a20185ca8cd8ad57156385182ba6ddceacd4b51eb",
    "data/anthropic_summary_indexed_docs.json": "10c694dcedb2093361e99b47010af131e020c8750eec08ee4efdab3e92e02b87",
    "data/retrieval_results.json": "5e2fb5d6bb7426e33ca3d8057d4e5bcb95c257ed35df227c8a579a8a2b350c30",
    "evaluation/docs_evaluation_dataset.json": "5c91a737d3467c8fd918fe1a962ca630c560ca3975bc104748f35e5165c67ff0",
    "evaluation/csvs/evaluation_results_detailed.csv": (
        "cff3f7b5cc6f74ae59af959833757daee300f656dceec4bb7edb998d2f24b869"
    ),
    "evaluation/csvs/evaluation_results_detailed_one.csv": (
        "39b07d1ee66a37bdac1ff3ed665efc209b669ef9fff228b7ece833f4b7def36a"
    ),
    "evaluation/csvs/evaluation_results_detailed_level_two.csv": (
        "ee1e255cfdd12b51a90dfd860a985be947a52add7af8b6c703d573f2e9ae73a8"
    ),
    "evaluation/csvs/evaluation_results_detailed_level_three.csv": (
        "153fed9a80b988bec2e77301814e1658d2de4d2793109bac86b869b62da9d8be"
    ),
    "evaluation/json_results/evaluation_results_one.json": (
        "aed23ea16b02ee7f867c2c60129c71fc451d1fae4760f195acc83159d9096451"
    ),
    "evaluation/json_results/evaluation_results_level_two.json": (
        "afb538da8905be87fe4dc03a66d907d5e5e5f5bf7098944b38510278ca9add23"
    ),
    "evaluation/json_results/evaluation_results_level_three.json": (
        "de20c00c8762a842d382f253c9ebb8dda5e94e946121b0a996e70f78c96b3a36"
    ),
    "evaluation/promptfoo_datasets/retrieval_dataset.csv": (
        "dfd90c59708b2e542ab4209cb96fdb3d3750fd5e6a0b0bf060b6d8c8d37e8ce9"
    ),
    "evaluation/promptfoo_datasets/end_to_end_dataset.csv": (
        "54e866421416acfd55914bb06539f3bc50f288bd02f44d6560154fc8972c032a"
    ),
}
EXTRACTED = {  # of guide.ipynb and data/retrieval_results.json, as files of their own
    "recorded/judge_level_1.jsonl": "dadc3248a6e51306d40dac8cceaecec79c99a81556b00862292173a8b9ae4bdd",
    "recorded/judge_level_2.jsonl": "82fdd5262f6129c85bccc4565b09f83dff68f1e6e8d175305373079154f3244a",
    "recorded/judge_level_3.jsonl": "9fe0017d29a2e1609474dc912a93ec3ab36fa8eb3f6f487304406fd59d10ad79",
    "recorded/promptfoo_retrieved_links.jsonl": "1ea03cb47a0cbec3d1e087abed63995f647bffbd2137f64d0d2cf8aa20b58078",
    "recorded/rerank_level_3.jsonl": "5c3e1c1a218df2aed2081a9c5bcfe4d551d7674e3d3a6bcf06a8e991e1ec3788",
}


def digest(file: str | Path) -> str | None:
    """Return a file's SHA-256 as hexadecimal digits, None if it is not there."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if Path(file).is_file() else None


def changed(folder: str | Path) -> list[str]:
    """Return the files of a folder that are not the published ones, in the table's order; absent ones are none."""
    found = {name: digest(Path(folder, name)) for name in (*PUBLISHED, *EXTRACTED)}
    wanted = {**PUBLISHED, **EXTRACTED}
    return [name for name, value in found.items() if value is not None and value != wanted[name]]
