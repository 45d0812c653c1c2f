"""What students hand in for notebooks 6 to 10: see `exercises`. Some of their lines are long."""
# ruff: noqa: E501

from exercises import Exercise

LATER: dict[str, list[Exercise]] = {
    "06_is_it_better": [
        (
            [
                "def my_holm(ps):\n"
                "    order = np.argsort(ps, kind='stable')\n"
                "    scaled = np.minimum(1, np.asarray(ps)[order] * np.arange(len(ps), 0, -1))\n"
                "    out = np.empty(len(ps))\n"
                "    out[order] = np.maximum.accumulate(scaled)\n"
                "    return out",
                "def my_holm(ps):\n"
                "    def at(p): return min(1, p * sum(other >= p for other in ps))\n"
                "    return [max(at(other) for other in ps if other <= p) for p in ps]",
            ],
            [
                "def my_holm(ps): return [min(1, len(ps) * p) for p in ps]",  # Bonferroni
                "def my_holm(ps):\n"  # sorted, not in the order of the input
                "    out = np.minimum(1, np.sort(ps) * np.arange(len(ps), 0, -1))\n"
                "    return np.maximum.accumulate(out)",
                "def my_holm(ps):\n"  # a larger p may end up below a smaller one
                "    return [min(1, p * sum(other >= p for other in ps)) for p in ps]",
                "def my_holm(ps):\n"  # above 1
                "    return [max(o * sum(x >= o for x in ps) for o in ps if o <= p) for p in ps]",
            ],
        ),
        (
            [
                "def chance(n, differing, change): return stats.power(n, differing, change)",
                "def chance(n, differing, change):\n"
                "    rng, share = np.random.default_rng(5), change / 2\n"
                "    outcomes = rng.multinomial(n, [differing / 2 + share, differing / 2 - share, 1 - differing], 20_000)\n"
                "    return np.mean([mid_p(int(w), int(l)) < 0.05 for w, l, _ in outcomes])",
            ],
            [
                "def chance(n, differing, change): return stats.power(n, 1.0, change)",  # every question differs
                "def chance(n, differing, change):\n"  # always the same number of questions that differ
                "    N = round(n * differing)\n"
                "    won = np.random.default_rng(5).binomial(N, (1 + change / differing) / 2, 5000)\n"
                "    return np.mean([mid_p(int(w), int(N - w)) < 0.05 for w in won])",
                "def chance(n, differing, change):\n"  # the exact test
                "    rng = np.random.default_rng(5)\n"
                "    N = rng.binomial(n, differing, 5000)\n"
                "    won = rng.binomial(N, (1 + change / differing) / 2)\n"
                "    return np.mean([exact(int(w), int(m - w)) < 0.05 for w, m in zip(won, N)])",
                "def chance(n, differing, change): return 1 - stats.power(n, differing, change)",  # how often it is missed
            ],
        ),
        (
            ["something = 1 - 0.95**5", "something = sum(comb(5, i) * 0.05**i * 0.95 ** (5 - i) for i in range(1, 6))"],
            ["something = 0.05", "something = 5 * 0.05", "something = 0.95**5", "something = 0.05**5"],
        ),
    ],
    "07_where_it_breaks": [
        (
            [
                "def mended_f1(precisions, recalls):\n"
                "    p, r = np.asarray(precisions, float), np.asarray(recalls, float)\n"
                "    both = p + r\n"
                "    return float((2 * p * r / np.where(both == 0, 1, both)).mean())",
                "def mended_f1(precisions, recalls):\n"
                "    each = [report_f1([p], [r]) if p and r else 0 for p, r in zip(precisions, recalls)]\n"
                "    return sum(each) / len(each)",
            ],
            [
                "mended_f1 = report_f1",
                "def mended_f1(precisions, recalls):\n"  # lost questions left out
                "    return np.mean([2 * p * r / (p + r) for p, r in zip(precisions, recalls) if p + r])",
                "def mended_f1(precisions, recalls): return np.mean([(p + r) / 2 for p, r in zip(precisions, recalls)])",
                "def mended_f1(precisions, recalls): return np.mean([p * r / max(p + r, 1e-9) for p, r in zip(precisions, recalls)])",
            ],
        ),
        (
            [
                "def mended_scores(search, questions, golds):\n"
                "    def one(question, gold):\n"
                "        try:\n"
                "            return sum(link in search(question) for link in gold) / len(gold)\n"
                "        except ConnectionError:\n"
                "            return None\n"
                "    return [one(*pair) for pair in zip(questions, golds)]",
                "def mended_scores(search, questions, golds):\n"
                "    scores = [None] * len(questions)\n"
                "    for i, question in enumerate(questions):\n"
                "        try: scores[i] = len({*search(question)} & {*golds[i]}) / len(golds[i])\n"
                "        except ConnectionError: pass\n"
                "    return tuple(scores)",
            ],
            [
                "mended_scores = score_all",
                "def mended_scores(search, questions, golds):\n"  # an error is a zero
                "    scores = []\n"
                "    for q, g in zip(questions, golds):\n"
                "        try: scores.append(len(set(search(q)) & set(g)) / len(g))\n"
                "        except ConnectionError: scores.append(0.0)\n"
                "    return scores",
                "def mended_scores(search, questions, golds):\n"  # the missing ones at the end
                "    known = score_all(search, questions, golds)\n"
                "    return known + [None] * (len(questions) - len(known))",
                "def mended_scores(search, questions, golds):\n"  # nothing found is an error
                "    def one(q, g):\n"
                "        try: return len(set(search(q)) & set(g)) / len(g) or None\n"
                "        except ConnectionError: return None\n"
                "    return [one(*pair) for pair in zip(questions, golds)]",
            ],
        ),
        (
            [
                "def mended_count(replies):\n"
                "    said = [parse_verdict(reply).is_correct for reply in replies]\n"
                "    return np.mean([one is True for one in said]), sum(one is None for one in said)",
                "import re\n\n"
                "def mended_count(replies):\n"
                "    said = [re.search(r'<is_correct>\\s*(true|false)\\s*<', reply) for reply in replies]\n"
                "    right = [m is not None and m[1] == 'true' for m in said]\n"
                "    return sum(right) / len(right), said.count(None)",
            ],
            [
                "def mended_count(replies): return count_correct(replies), 1",
                "def mended_count(replies):\n"  # undecided is wrong, and nobody hears of it
                "    return sum(parse_verdict(r).is_correct is True for r in replies) / len(replies), 0",
                "def mended_count(replies):\n"  # over those that could be read
                "    said = [v for v in (parse_verdict(r).is_correct for r in replies) if v is not None]\n"
                "    return sum(said) / max(len(said), 1), len(replies) - len(said)",
                "def mended_count(replies): return sum('true' in r for r in replies) / len(replies), 2",
            ],
        ),
    ],
    "08_ragas_metrics": [
        (
            [
                "def my_precision(useful):\n"
                "    v = np.array(useful, float)\n"
                "    return float((v * v.cumsum() / np.arange(1, len(v) + 1)).sum() / max(v.sum(), 1))",
                "def my_precision(useful):\n"
                "    found, total = 0, 0\n"
                "    for rank, verdict in enumerate(useful, 1):\n"
                "        if verdict:\n"
                "            found += 1\n"
                "            total += found / rank\n"
                "    return total / found if found else 0",
            ],
            [
                "def my_precision(useful): return sum(useful) / len(useful)",
                "def my_precision(useful): return 1 / (useful.index(True) + 1) if any(useful) else 0",
                "def my_precision(useful): return sum(sum(useful[:k]) / k for k in range(1, len(useful) + 1)) / len(useful)",
                "def my_precision(useful):\n"  # full marks for nothing
                "    notes = [sum(useful[: k + 1]) / (k + 1) for k, v in enumerate(useful) if v]\n"
                "    return sum(notes) / len(notes) if notes else 1",
            ],
        ),
        (
            [
                "mine = Record('sun', 'What moves?', ['People held that the sun circles the earth.'], "
                "'The sun circles the earth.', 'Our planet travels round its star.')",
                "mine = Record(\n"
                "    id='salt', user_input='How much salt?', retrieved_contexts=['Take nine spoons of salt.', 'Stir well.'],\n"
                "    response='Take nine spoons of salt.', reference='A pinch will do.',\n"
                ")",
            ],
            [
                "mine = apple",
                "mine = Record('x', 'Who?', ['A bird sang.'], 'It was the butcher himself.', 'Nobody knows.')",  # unfaithful
                "mine = Record('x', 'What moves?', ['The sun moves.'], 'The sun moves.', 'The sun moves.')",  # right
                "mine = {'response': 'The moon is cheese.'}",
            ],
        ),
        (
            [
                "def right(n): return (np.random.default_rng(0).random((200_000, n)) < 0.8).sum(axis=1) > n / 2\n\n"
                "votes_needed = next(n for n in range(1, 21, 2) if right(n).mean() >= 0.95)",
                "from math import comb\n\n"
                "def right(n): return sum(comb(n, i) * 0.8**i * 0.2 ** (n - i) for i in range(n // 2 + 1, n + 1))\n\n"
                "votes_needed = min(n for n in range(1, 99, 2) if right(n) > 0.95)",
            ],
            ["votes_needed = 5", "votes_needed = 9", "votes_needed = 8", "votes_needed = 1"],
        ),
    ],
    "09_your_own_documents": [
        (
            [
                "def counts_of(n, shares):\n"
                "    exact = pd.Series(shares) * n\n"
                "    down = (exact // 1).astype(int)\n"
                "    down[(exact - down).nlargest(int(n - down.sum())).index] += 1\n"
                "    return {name: int(count) for name, count in down.items()}",
                "def counts_of(n, shares):\n"
                "    counts = {name: int(n * share) for name, share in shares.items()}\n"
                "    while sum(counts.values()) < n:\n"
                "        most = max(counts, key=lambda name: n * shares[name] - counts[name])\n"
                "        counts[most] += 1\n"
                "    return dict(reversed(counts.items()))",
            ],
            [
                "def counts_of(n, shares): return {name: round(n * share) for name, share in shares.items()}",
                "def counts_of(n, shares): return {name: int(n * share) for name, share in shares.items()}",
                "def counts_of(n, shares):\n"  # the rest to the first
                "    counts = {name: int(n * share) for name, share in shares.items()}\n"
                "    counts['a' if 'a' in counts else 'simple'] += n - sum(counts.values())\n"
                "    return counts",
                "def counts_of(n, shares):\n"  # the rest to the largest share
                "    counts = {name: int(n * share) for name, share in shares.items()}\n"
                "    for name in sorted(shares, key=shares.get)[: n - sum(counts.values())]: counts[name] += 1\n"
                "    return counts",
            ],
        ),
        (
            [
                "import re\n\n"
                "def standing_alone(questions):\n"
                "    return [q for q in questions if not re.search(r'passage|above|the text|this section', q, re.I)]",
                "def standing_alone(questions):\n"
                "    def points(q): return 'passage' in q or 'above' in q or 'the text' in q or 'section' in q\n"
                "    return (q for q in questions if not points(q.casefold()))",
            ],
            [
                "def standing_alone(questions): return [q for q in questions if 'passage' not in q]",
                "def standing_alone(questions): return list(questions)",
                "def standing_alone(questions):\n"  # capitals fool it
                "    return [q for q in questions if not any(w in q for w in ('passage', 'above', 'the text', 'this section'))]",
                "def standing_alone(questions):\n"  # every text is out of sight
                "    return [q for q in questions if not any(w in q.lower() for w in ('passage', 'above', 'text', 'section'))]",
            ],
        ),
        (
            ["most_calls = sum(5 for _ in range(10) for _ in range(3))", "most_calls = 150.0"],
            ["most_calls = 10 * 3", "most_calls = 10 * 5", "most_calls = 3 * 5", "most_calls = 10 * 3**5"],
        ),
    ],
    "10_beyond": [
        (
            [
                "def fuse_weighted(rankings, weights, k=60):\n"
                "    items = sorted({item for ranking in rankings for item in ranking})\n"
                "    def points(item):\n"
                "        return sum(w / (k + r.index(item) + 1) for r, w in zip(rankings, weights) if item in r)\n"
                "    return sorted(items, key=points, reverse=True)",
                "from collections import Counter\n\n"
                "def fuse_weighted(rankings, weights, k=60):\n"
                "    points = Counter()\n"
                "    for ranking, weight in zip(rankings, weights):\n"
                "        points.update({item: weight / (k + at + 1) for at, item in enumerate(ranking)})\n"
                "    return [item for _, item in sorted((-value, item) for item, value in points.items())]",
            ],
            [
                "def fuse_weighted(rankings, weights, k=60): return fuse(rankings, k)",
                "def fuse_weighted(rankings, weights, k=60):\n"  # the square of the weight
                "    points = {}\n"
                "    for ranking, w in zip(rankings, weights):\n"
                "        for rank, item in enumerate(ranking, 1):\n"
                "            points[item] = points.get(item, 0) + w * w / (k + rank)\n"
                "    return sorted(points, key=lambda item: (-points[item], item))",
                "def fuse_weighted(rankings, weights, k=60):\n"  # k forgotten
                "    points = {}\n"
                "    for ranking, w in zip(rankings, weights):\n"
                "        for rank, item in enumerate(ranking, 1):\n"
                "            points[item] = points.get(item, 0) + w / (60 + rank)\n"
                "    return sorted(points, key=lambda item: (-points[item], item))",
                "def fuse_weighted(rankings, weights, k=60):\n"  # the weight inside
                "    points = {}\n"
                "    for ranking, w in zip(rankings, weights):\n"
                "        for rank, item in enumerate(ranking, 1):\n"
                "            points[item] = points.get(item, 0) + 1 / (k + rank / max(w, 1e-9))\n"
                "    return sorted(points, key=lambda item: (-points[item], item))",
            ],
        ),
        (
            [
                "in_float32, in_bytes = 8 * 10**9 // 4096, 8 * 10**9 // 1024",
                "in_float32, in_bytes = 8e9 / 4096, 8e9 / 1024",
            ],
            [
                "in_float32, in_bytes = int(8e9 // 1024), int(8e9 // 1024)",  # one byte for a float
                "in_float32, in_bytes = int(8e9 // 1024), int(8e9 // 4096)",  # swapped
                "in_float32, in_bytes = 8 * 2**30 // 4096, 8 * 2**30 // 1024",  # GiB
                "in_float32, in_bytes = int(8e9 // 4), int(8e9)",  # numbers, not vectors
            ],
        ),
        (
            [
                "def only(first, second):\n"
                "    both = first.set_index('id')['mrr'].gt(0).to_frame('a').join(second.set_index('id')['mrr'].gt(0).rename('b'))\n"
                "    return int((both.a & ~both.b).sum()), int((both.b & ~both.a).sum())",
                "def only(first, second):\n"
                "    other = dict(zip(second['id'], second['mrr']))\n"
                "    signs = [(value > 0) - (other[name] > 0) for name, value in zip(first['id'], first['mrr'])]\n"
                "    return [signs.count(1), signs.count(-1)]",
            ],
            [
                "def only(first, second): return int((first['mrr'] > 0).sum()), int((second['mrr'] > 0).sum())",  # both as well
                "def only(first, second):\n"  # swapped
                "    a, b = (set(t['id'][t['mrr'] > 0]) for t in (first, second))\n"
                "    return len(b - a), len(a - b)",
                "def only(first, second):\n"  # row beside row
                "    a, b = first['mrr'] > 0, second['mrr'] > 0\n"
                "    return int((a & ~b).sum()), int((b & ~a).sum())",
                "def only(first, second):\n"  # better, not alone
                "    a, b = (t.sort_values('id')['mrr'].to_numpy() for t in (first, second))\n"
                "    return int((a > b).sum()), int((b > a).sum())",
            ],
        ),
    ],
}
