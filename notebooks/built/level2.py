"""Notebook 2: the metrics, the loop that evaluates a search, and the scoreboard."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from rag.report.style import COLOURS


def precision(retrieved, gold):
    return len(set(retrieved) & set(gold)) / len(set(retrieved)) if retrieved else 0.0


def f1(p, r):
    return 2 * p * r / (p + r) if p + r else 0.0


def reciprocal_rank(retrieved, gold):
    ranks = [rank for rank, link in enumerate(retrieved, start=1) if link in gold]
    return 1 / ranks[0] if ranks else 0.0


def groups_of(question):
    return question.get("correct_groups") or [[link] for link in question["correct_chunks"]]


def recall(retrieved, groups):
    return sum(not set(group).isdisjoint(retrieved) for group in groups) / len(groups)


def measure(search, questions):
    rows = []
    for q, hits in zip(questions, search([q["question"] for q in questions])):
        links, gold = [hit["metadata"]["chunk_link"] for hit in hits], q["correct_chunks"]
        row = {"id": q["id"], "kind": q.get("kind", ""), "precision": precision(links, gold)}
        row |= {"recall": recall(links, groups_of(q)), "RR": reciprocal_rank(links, gold)}
        rows.append(row | {"F1": f1(row["precision"], row["recall"])})
    return pd.DataFrame(rows).set_index("id")


def headline(rows):
    p, r = rows["precision"].mean(), rows["recall"].mean()
    return {"precision": p, "recall": r, "F1": f1(p, r), "MRR": rows["RR"].mean()}


METRICS = ["precision", "recall", "F1", "MRR", "accuracy"]


def scoreboard(bars, n):
    ax = plt.subplots(figsize=(7.5, 3.5), layout="constrained")[1]
    for level, means in bars.items():
        known = [(i, means[metric]) for i, metric in enumerate(METRICS) if metric in means]
        x, heights = np.transpose(known)
        x += 0.27 * (list(COLOURS).index(level) - 2)
        drawn = ax.bar(x, heights, 0.25, color=COLOURS[level], label=level)
        ax.bar_label(drawn, fmt="%.2f", fontsize=8)
    ax.set(xticks=range(5), xticklabels=METRICS, xlim=(-0.5, 4.5), ylim=(0, 1.05), ylabel="score, 0 to 1")
    ax.set_title(f"Scoreboard: {n} dev questions, k = 3")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=4, frameon=False)
