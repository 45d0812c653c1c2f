"""More of what students hand in, by notebook and exercise: what was refused, passed or crashed wrongly before.

Right solutions of yet other makes; wrong ones that are nothing of the kind: a list for a number, a mean forgotten,
one of two values left empty. See `exercises`.
"""
# ruff: noqa: E501

from exercises import Exercise

FURTHER: dict[tuple[str, int], Exercise] = {
    ("01_basic_rag", 1): (
        [
            "import heapq\n\ndef top_k_of(scores, k, allowed):\n    rows = (row for row, ok in enumerate(allowed) if ok)\n    return heapq.nlargest(k, rows, key=lambda row: (scores[row], -row))"
        ],
        [
            "def top_k_of(scores, k, allowed): return 1",
            "def top_k_of(scores, k, allowed): return [row + 1 for row in range(len(scores)) if allowed[row]][:k]",
            "def top_k_of(scores, k, allowed): return scores[np.array(allowed)][:k]",
        ],
    ),
    ("01_basic_rag", 2): (
        ["my_vector = pd.Series([0.2, 0.1])"],
        ["my_vector = '0.3, 0.1'", "my_vector = {'x': 0.3, 'y': 0.1}", "my_vector = 0.3"],
    ),
    ("01_basic_rag", 3): (
        ["silenced = np.searchsorted(np.sort(honest), np.median(hopeless), side='right')"],
        ["silenced = honest <= np.median(hopeless)", "silenced = 'many of them'", "silenced = float('nan')"],
    ),
    ("02_measuring_retrieval", 1): (
        [
            "from fractions import Fraction\n\ndef average_precision(retrieved, gold):\n    at = [Fraction(sum(x in gold for x in retrieved[:i]), i) for i, x in enumerate(retrieved, 1) if x in gold]\n    return sum(at) / min(len(gold), len(retrieved))"
        ],
        [
            "def average_precision(r, g): return np.mean([(n + 1) / (r.index(x) + 1) for n, x in enumerate(g)])",
            "def average_precision(r, g): return 'one'",
        ],
    ),
    ("02_measuring_retrieval", 2): (
        ["my_retrieved, my_gold = 'xyaz', 'ab'"],
        ["my_retrieved, my_gold = ['x', 'y', 'a', 'z'], None", "my_retrieved, my_gold = 4, 2"],
    ),
    ("02_measuring_retrieval", 3): (
        [],
        [
            "k_needed, precision_there = k_needed, None",
            "k_needed, precision_there = k_needed, rows['precision']",
            "k_needed, precision_there = np.array([1, 2]), 0.1",
        ],
    ),
    ("03_summary_index", 1): (
        ["class CardDB(SummaryDB):\n    def text(self, chunk): return super().text({**chunk, 'text': ''}).strip()"],
        [
            "class CardDB(VectorDB):\n    def text(self, chunk): return ' '.join(v for k, v in chunk.items() if k != 'text')",
            "class CardDB(VectorDB):\n    def text(self, chunk): chunk['chunk_heading'] + chunk['summary']",
            "class CardDB(VectorDB):\n    def load_data(self, chunks):\n        super().load_data([{**c, 'text': c['summary']} for c in chunks])",
        ],
    ),
    ("03_summary_index", 2): (
        [],
        [
            "improved, worsened = after['RR'] > before['RR'], after['RR'] < before['RR']",
            "improved, worsened = improved, None",
        ],
    ),
    ("03_summary_index", 3): (
        [],
        [
            "my_summary = next(q for q in dev if q['id'] == 'h084')['question'].replace(' ', '_')",
            "my_summary = 'grader-colleague-mark-ticking-boxes-looking-people-times-automatic ' * 12",
        ],
    ),
    ("04_reranking", 1): (
        [
            "def picks(reply, n):\n    known = {str(i): i for i in range(n)}\n    return list(dict.fromkeys(known[x] for x in re.split(r'[^0-9.+\\-a-z]+', reply) if x in known))"
        ],
        [
            "def picks(reply, n): return eval(reply) if ',' in reply else [1]",
            "def picks(reply, n): return picks_of(reply) if n < 5 else 1",
        ],
    ),
    ("04_reranking", 2): ([], ["needed = np.array([1, 2])", "needed = 'twenty'"]),
    ("04_reranking", 3): (
        [],
        [
            "step_20 = (after['RR'] - first['RR'])[:20]",
            "step_all = None",
            "same_direction = after['RR'] > first['RR']",
            "step_20, step_all = 'up', 'up'",
        ],
    ),
    ("05_end_to_end", 1): (
        [
            "from fractions import Fraction as F\n\ndef kappa_of(x, y):\n    n, a, b = len(x), F(sum(x), len(x)), F(sum(y), len(y))\n    chance = a * b + (1 - a) * (1 - b)\n    return None if chance == 1 else (F(sum(i == j for i, j in zip(x, y)), n) - chance) / (1 - chance)"
        ],
        [
            "def kappa_of(first, second): return np.equal(first, second)",
            "def kappa_of(first, second): return 'fair'",
            "def kappa_of(first, second): return 0.4 if len(first) > 10 else first.mean() if len(first) > 2 else 1",
        ],
    ),
    ("05_end_to_end", 2): ([], ["my_marks = {name: np.array([True, False]) for name in mine}"]),
    ("06_is_it_better", 1): (
        ["def my_holm(ps): return (p for p in stats.holm(ps))"],
        ["def my_holm(ps): return dict(enumerate(ps))", "def my_holm(ps): return ps[0]"],
    ),
    ("06_is_it_better", 2): (
        [],
        [
            "def chance(n, differing, change): return 'half'",
            "def chance(n, differing, change): return [0.8]",
            "def chance(n, differing, change): return {'power': 0.8}",
        ],
    ),
    ("06_is_it_better", 3): (
        ["something = np.float32(1 - 0.95**5)"],
        ["something = '0.23'", "something = np.array([0.2, 0.3])", "something = [0.2262]"],
    ),
    ("07_where_it_breaks", 1): (
        [],
        [
            "def mended_f1(p, r): return np.array([2 * a * b / (a + b + 1e-15) for a, b in zip(p, r)])",
            "def mended_f1(p, r): return 1 if len(p) == 1 else p.mean()",
            "def mended_f1(p, r): return sum(2 * a * b / (a + b) for a, b in zip(p, r)) / len(p)",
        ],
    ),
    ("07_where_it_breaks", 2): (
        [
            "def mended_scores(search, questions, golds):\n    for question, gold in zip(questions, golds):\n        try: yield len({*search(question)} & {*gold}) / len(gold)\n        except OSError: yield None"
        ],
        [
            "def mended_scores(search, questions, golds): return 3",
            "def mended_scores(search, questions, golds): return [search(question) for question in questions]",
        ],
    ),
    ("07_where_it_breaks", 3): (
        [
            "def mended_count(replies):\n    right = sum('<is_correct>true<' in r for r in replies)\n    wrong = sum('<is_correct>false<' in r for r in replies)\n    return [right / len(replies), len(replies) - right - wrong]"
        ],
        [
            "def mended_count(replies): return 0.5",
            "def mended_count(replies): return 1, 2, 3",
            "def mended_count(replies): return [parse_verdict(r) for r in replies], 1",
        ],
    ),
    ("08_ragas_metrics", 1): (
        [],
        [
            "def my_precision(useful): return np.cumsum(useful) / np.arange(1, len(useful) + 1)",
            "def my_precision(useful): return 1 / (useful.index(True) + 1)",
            "def my_precision(useful): return 'good'",
        ],
    ),
    ("08_ragas_metrics", 2): (
        [],
        [
            "mine = Record('x')",
            "mine = Record(1, 2, [3], 4, 5)",
            "mine = Record('x', 'q', ['The moon is cheese.'], 'The moon is cheese.', None)",
        ],
    ),
    ("08_ragas_metrics", 3): (
        [],
        ["votes_needed = [7]", "votes_needed = float('nan')", "votes_needed = np.array([1, 3])"],
    ),
    ("09_your_own_documents", 2): ([], ["def standing_alone(questions): return True"]),
    ("09_your_own_documents", 3): (
        ["from decimal import Decimal\n\nmost_calls = Decimal(150)"],
        ["most_calls = [150]", "most_calls = float('nan')", "most_calls = range(150)"],
    ),
    ("10_beyond", 1): ([], ["def fuse_weighted(rankings, weights, k=60): return 1"]),
    ("10_beyond", 2): (
        [],
        [
            "in_float32, in_bytes = 8 * 10**9 // 4096, None",
            "in_float32, in_bytes = [1953125], [7812500]",
            "in_float32, in_bytes = float('inf'), float('nan')",
        ],
    ),
    ("10_beyond", 3): (
        [
            "def only(first, second):\n    both = first.merge(second, on='id')\n    a, b = both['mrr_x'] > 0, both['mrr_y'] > 0\n    return np.array([(a & ~b).sum(), (~a & b).sum()])"
        ],
        [
            "def only(first, second): return 3",
            "def only(first, second): return (first['mrr'] > 0) & ~(second['mrr'] > 0), 0",
        ],
    ),
}
