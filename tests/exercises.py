"""What students hand in: right solutions of different make and wrong ones for each exercise, two and four at least.

A pair for each exercise, in the order of the page: the right ones and the wrong ones.
"""
# ruff: noqa: E501

Exercise = tuple[list[str], list[str]]

EXERCISES: dict[str, list[Exercise]] = {
    "01_basic_rag": [
        (
            [
                "def top_k_of(scores, k, allowed):\n"
                "    order = np.argsort(-scores, kind='stable')\n"
                "    return [row for row in order if allowed[row]][:k]",
                "def top_k_of(scores, k, allowed):\n"
                "    rows = [row for row in range(len(scores)) if allowed[row]]\n"
                "    return sorted(rows, key=lambda row: -scores[row])[:k]",
            ],
            [
                "def top_k_of(scores, k, allowed): return [row for row in top_k(scores, k) if allowed[row]]",  # cut first
                "def top_k_of(scores, k, allowed): return top_k(scores[np.array(allowed)], k)",  # rows of the part
                "def top_k_of(scores, k, allowed): return [r for r in np.argsort(scores)[::-1] if allowed[r]][:k]",  # ties
                "def top_k_of(scores, k, allowed): return top_k(np.where(allowed, scores, 0), k)",  # 0 is a score, too
            ],
        ),
        (
            ["my_vector = np.array([0.6, 0.2])", "my_vector = (0.5, 0.3)"],
            [
                "my_vector = [3, 1]",  # the cat itself: wins both
                "my_vector = [0.05, 0.3]",  # a short invoice
                "my_vector = [-0.3, -0.1]",  # turned round
                "my_vector = [0, 0]",
            ],
        ),
        (
            [
                "bar = np.median(hopeless)\nsilenced = len(honest) - sum(1 for value in honest if value > bar)",
                "silenced = np.count_nonzero(~(honest > np.percentile(hopeless, 50)))",
            ],
            [
                "silenced = int((honest > np.median(hopeless)).sum())",  # those that pass
                "silenced = float((honest <= np.median(hopeless)).mean())",  # a share
                "silenced = int((honest <= np.mean(hopeless)).sum())",
                "silenced = int((hopeless <= np.median(hopeless)).sum())",  # the wrong crowd
            ],
        ),
    ],
    "02_measuring_retrieval": [
        (
            [
                "def average_precision(retrieved, gold):\n"
                "    total = found = 0\n"
                "    for place, link in enumerate(retrieved, 1):\n"
                "        if link in gold:\n"
                "            found += 1\n"
                "            total += found / place\n"
                "    return total / min(len(gold), len(retrieved))",
                "def average_precision(retrieved, gold):\n"
                "    is_gold = np.isin(retrieved, gold)\n"
                "    at = np.cumsum(is_gold) / np.arange(1, len(retrieved) + 1)\n"
                "    return (at * is_gold).sum() / min(len(gold), len(retrieved))",
            ],
            [
                "def average_precision(r, g): return precision(r, g)",
                "def average_precision(r, g): return reciprocal_rank(r, g)",
                "def average_precision(r, g):\n"  # divided by the gold that was found
                "    at = [precision(r[: i + 1], g) for i, x in enumerate(r) if x in g]\n"
                "    return sum(at) / len(at)",
                "def average_precision(r, g):\n"  # divided by all gold, reachable or not
                "    return sum(precision(r[: i + 1], g) for i, x in enumerate(r) if x in g) / len(g)",
            ],
        ),
        (
            [
                "my_retrieved, my_gold = ['x', 'y', 'a', 'z'], {'a', 'b'}",
                "my_retrieved, my_gold = ['q', 'w', 'a', 'b', 'e', 'r', 't', 'y'], ['a', 'b', 'c', 'd']",
            ],
            [
                "my_retrieved, my_gold = ['x', 'a', 'y', 'z'], ['a', 'b']",  # second, not third
                "my_retrieved, my_gold = ['x', 'y', 'a'], ['a', 'b']",  # a third
                "my_retrieved, my_gold = ['x', 'y', 'a', 'z'], ['a']",  # all of the gold
                "my_retrieved, my_gold = ['x', 'x', 'a', 'z'], ['a', 'b']",  # one of them twice
            ],
        ),
        (
            [
                "def means_at(k):\n"
                "    rows = [(precision(o[:k], q['correct_chunks']), recall(o[:k], groups_of(q))) for o, q in zip(deep, dev)]\n"
                "    return np.mean(rows, axis=0)\n\n\n"
                "k_needed = min(k for k in range(1, 61) if means_at(k)[1] >= 0.8)\n"
                "precision_there = means_at(k_needed)[0]",
                "def cut(k): return lambda questions: [hits[:k] for hits in found]\n\n\n"
                "k_needed = 1\n"
                "while measure(cut(k_needed), dev)['recall'].mean() < 0.8: k_needed += 1\n"
                "precision_there = measure(cut(k_needed), dev)['precision'].mean()",
            ],
            [
                "k_needed, precision_there = k_needed + 1, precision_there",  # one less would do
                "k_needed, precision_there = k_needed - 1, precision_there",
                "k_needed, precision_there = k_needed, rows['precision'].mean()",  # of the first three
                "k_needed, precision_there = 0.8, precision_there",
            ],
        ),
    ],
    "03_summary_index": [
        (
            [
                "class CardDB(SummaryDB):\n"
                "    def text(self, chunk): return '\\n\\n'.join([chunk['chunk_heading'], chunk['summary']])",
                "class CardDB(VectorDB):\n"
                "    def text(self, chunk):\n"
                "        return super().text({**chunk, 'text': chunk['summary']})",
            ],
            [
                "class CardDB(SummaryDB): pass",  # the text as well
                "class CardDB(VectorDB):\n    def text(self, chunk): return chunk['summary']",  # no heading
                "class CardDB(VectorDB):\n    def text(self, chunk): return chunk['chunk_heading']",
                "class CardDB(VectorDB):\n"  # spoils what is read
                "    def load_data(self, chunks):\n"
                "        return super().load_data([{**c, 'text': c['summary']} for c in chunks])",
            ],
        ),
        (
            [
                "def depth(order, q): return min([order.index(x) for x in q['correct_chunks'] if x in order], default=9999)\n\n\n"
                "both = [(depth(a, q), depth(b, q)) for a, b, q in zip(deep_basic, deep_summary, dev)]\n"
                "improved, worsened = sum(b < a for a, b in both), sum(b > a for a, b in both)",
                "def rr(orders):\n"
                "    return measure(lambda _: [[{'metadata': {'chunk_link': x}} for x in o] for o in orders], dev)['RR']\n\n\n"
                "gain = rr(deep_summary) - rr(deep_basic)\n"
                "improved, worsened = int((gain > 0).sum()), int((gain < 0).sum())",
            ],
            [
                "improved, worsened = worsened, improved",
                "improved, worsened = (after['RR'] > before['RR']).sum(), (after['RR'] < before['RR']).sum()",  # the first 3
                "improved, worsened = improved + worsened, 0",
                "improved, worsened = improved / len(dev), worsened / len(dev)",  # shares
            ],
        ),
        (
            [
                "my_summary = ('Why a colleague and an automatic grader who put the same mark nine times need not be better '\n"
                "              'than ticking boxes without looking: agreement by chance.')",
                "my_summary = 'Same mark, nine of ten: no better than ticking boxes blindly? Grader, colleague, people, chance.'",
            ],
            [
                "my_summary = 'About agreement between judges.'",  # nobody asks like that
                "my_summary = next(q for q in dev if q['id'] == 'h084')['question']",
                "my_summary = next(q for q in dev if q['id'] == 'h084')['question'].upper()",
                "my_summary = 'grader colleague mark ticking boxes looking people ' * 5",
            ],
        ),
    ],
    "04_reranking": [
        (
            [
                "def picks(reply, n):\n"
                "    out = []\n"
                "    for item in re.sub(r'[\\[\\],;]', ' ', reply).split():\n"
                "        if re.fullmatch('[0-9]+', item) and int(item) < n and int(item) not in out:\n"
                "            out.append(int(item))\n"
                "    return out",
                "def picks(reply, n):\n"
                "    found = re.findall(r'(?:^|(?<=[\\s,;\\[\\]]))[0-9]+(?=[\\s,;\\[\\]]|$)', reply)\n"
                "    return tuple(dict.fromkeys(int(x) for x in found if int(x) in range(n)))",
            ],
            [
                "def picks(reply, n): return [int(x) for x in re.findall('[0-9]+', reply) if int(x) < n]",
                "def picks(reply, n): return [int(x) for x in reply.strip('[]').split(',')]",
                "def picks(reply, n):\n"  # sorted
                "    return sorted({int(x) for x in re.split(r'[\\s,;\\[\\]]+', reply) if x.isdecimal() and int(x) < n})",
                "def picks(reply, n):\n"  # as many as n included
                "    items = re.split(r'[\\s,;\\[\\]]+', reply)\n"
                "    return [*dict.fromkeys(int(x) for x in items if x.lstrip('-').isdecimal() and int(x) <= n)]",
            ],
        ),
        (
            [
                "means = [np.mean([oracle(o[:m], q)['recall'] for o, q in zip(orders, dev)]) for m in range(61)]\n"
                "needed = next(m for m in range(61) if means[m] >= 0.9)",
                "needed = 1\n"
                "while np.mean([oracle(o[:needed], q)['recall'] for o, q in zip(orders, dev)]) < 0.9: needed += 1",
            ],
            ["needed = 60", "needed = 20", "needed = needed - 1", "needed = 0.9"],
        ),
        (
            [
                "means = [(after['RR'][:n].mean(), first['RR'][:n].mean()) for n in (20, len(dev))]\n"
                "step_20, step_all = (last - start for last, start in means)\n"
                "same_direction = np.sign(step_20) == np.sign(step_all)",
                "rr = [[run.rows[i].scores['mrr'] for i in range(len(dev))] for run in (runs[0], runs[2])]\n"
                "step_20 = (sum(rr[1][:20]) - sum(rr[0][:20])) / 20\n"
                "step_all = (sum(rr[1]) - sum(rr[0])) / len(dev)\n"
                "same_direction = (step_20 > 0) == (step_all > 0) and (step_20 < 0) == (step_all < 0)",
            ],
            [
                "step_20, step_all = step_all + 0.01, step_20",
                "same_direction = not same_direction",
                "step_20, step_all = -step_20 - 0.01, -step_all - 0.01",  # from level 3 to level 1
                "step_20 = sum(after['RR'][:20] - first['RR'][:20]) + 1",  # a sum
            ],
        ),
    ],
    "05_end_to_end": [
        (
            [
                "def kappa_of(first, second):\n"
                "    n = len(first)\n"
                "    agree = sum(bool(x) == bool(y) for x, y in zip(first, second)) / n\n"
                "    a, b = sum(map(bool, first)) / n, sum(map(bool, second)) / n\n"
                "    chance = a * b + (1 - a) * (1 - b)\n"
                "    if chance == 1:\n"
                "        return None\n"
                "    return (agree - chance) / (1 - chance)",
                "def kappa_of(first, second):\n"
                "    table = np.zeros((2, 2))\n"
                "    for x, y in zip(first, second):\n"
                "        table[int(x), int(y)] += 1 / len(first)\n"
                "    chance = table.sum(0) @ table.sum(1)\n"
                "    return (np.trace(table) - chance) / (1 - chance) if 1 - chance > 1e-12 else None",
            ],
            [
                "def kappa_of(first, second): return np.mean(np.equal(first, second))",  # agreement
                "def kappa_of(first, second): return (np.mean(np.equal(first, second)) - 0.5) / 0.5",  # a coin's chance
                "def kappa_of(first, second):\n"  # None is not among its answers
                "    a, b = sum(first) / len(first), sum(second) / len(second)\n"
                "    chance = a * b + (1 - a) * (1 - b)\n"
                "    return (sum(x == y for x, y in zip(first, second)) / len(first) - chance) / (1 - chance)",
                "def kappa_of(first, second):\n"  # both say True: half of chance
                "    a, b = np.mean(first), np.mean(second)\n"
                "    return None if a * b == 1 else (np.mean(np.equal(first, second)) - a * b) / (1 - a * b)",
            ],
        ),
        (
            [
                "my_marks = dict(d013=True, d037=False, d015=False, d012=True)",
                "my_marks = {name: np.bool_(name in ('d013', 'd015')) for name in mine}",
            ],
            [
                "my_marks = {'d012': False, 'd013': False, 'd015': True, 'd037': True}",  # the clear ones swapped
                "my_marks = {name: True for name in mine}",
                "my_marks = {name: False for name in mine}",
                "my_marks = {'d013': True, 'd037': False}",
            ],
        ),
        (
            [
                "borrowed = judge_all(backend, texts, references, answer_all(backend, basic_db, texts, found['basic']))\n"
                "own = judge_all(backend, texts, references, answer_all(backend, summary_db, texts, found['summary']))",
                "pages = [[basic_db.text(h['metadata']) for h in hits] for hits in found['basic']]\n"
                "again = backend.answerer(texts, [Retrieval(h, h, p) for h, p in zip(found['basic'], pages)])\n"
                "borrowed = tuple(v.is_correct for v in backend.judge.decide(texts, references, again))\n"
                "own = tuple(verdicts['summary'])",
            ],
            [
                "own, borrowed = borrowed, own",
                "own, borrowed = own, own",
                "own, borrowed = accuracy(own), accuracy(borrowed)",
                "own, borrowed = [own[0]], [borrowed[0]]",
            ],
        ),
    ],
}
