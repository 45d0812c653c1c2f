"""What a difference is besides large or small: shown to be none, or not the same for every kind of question.

In: one difference for each question. Out: p values and one of three decisions. Sources: Schuirmann (1987) for two
one-sided tests; Chung and Romano (2013) for permutation tests of means whose variances differ.
"""

from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag.errors import InvalidValue
from rag.evaluation.intervals import TINY, Floats, check_labels, checked, difference_error, numbered, pseudo_difference
from rag.evaluation.stats import BLOCK, LEVEL, RESAMPLES

Decision = Literal["a difference", "shown to be equal", "no difference shown"]
MARGIN = 0.05  # two means no further apart than this are equal for practical purposes


def equivalence_p(
    differences: npt.ArrayLike, *, margin: float = MARGIN, clusters: Sequence[Hashable] | None = None
) -> float:
    """Return the p of "no more than ``margin`` apart": the larger of two one-sided tests (Schuirmann, 1987).

    Each is a z test with the error of `difference_interval`, and cannot be surer than a binomial test: were the true
    mean +margin, the positive parts of the differences, in [0, 1], would average margin and the negative parts
    together. The z test alone is wrong in up to 10 % of cases where few questions differ.

    >>> equivalence_p([0] * 50) > .05 > equivalence_p([0] * 60)  # .95^50 = .077, .95^60 = .046
    True
    """
    from scipy.special import betainc

    if not 0 < margin < 1:
        raise InvalidValue(f"margin must be above 0 and below 1, got {margin}")
    d = checked(differences)
    mean, error = difference_error(d, clusters=clusters)
    p = 0.0
    for signed in (d, -d):
        won, lost = (float(np.maximum(part, 0).sum()) for part in (signed, -signed))
        share = min(1.0, margin + lost / len(d))
        binomial = float(betainc(len(d) - won, won + 1, 1 - share)) if won < len(d) else 1.0
        z = (margin - mean * (1 if signed is d else -1)) / error
        p = max(p, NormalDist().cdf(-z), binomial)
    return p


def decide(corrected_p: float, equal_p: float) -> Decision:
    """Return which of three things was shown: a difference, that there is none to speak of, or neither.

    >>> decide(.01, .5), decide(.5, .01), decide(.5, .5)
    ('a difference', 'shown to be equal', 'no difference shown')
    """
    if corrected_p < LEVEL:
        return "a difference"
    return "shown to be equal" if equal_p < LEVEL else "no difference shown"


def interaction_p(
    differences: npt.ArrayLike, kinds: Sequence[Hashable], *, resamples: int = RESAMPLES, seed: int = 0
) -> float:
    """Return the p of "the difference is the same for every kind of question", by handing the kinds out anew.

    The statistic is Σ_k w_k (m_k - m)² with w_k = n_k / v_k and m the mean weighted so: dividing by each kind's own
    variance (with a pseudo-question's) keeps the test honest where kinds vary differently (Chung and Romano, 2013).
    """
    d = checked(differences)
    check_labels("kinds", len(d), kinds)
    labels = numbered(kinds)
    if labels.max() == 0 or not np.ptp(d):
        return 1.0
    rng = np.random.default_rng(seed)
    onehot = np.eye(labels.max() + 1)[labels]
    extra = pseudo_difference(d - d.mean()) ** 2
    observed = _spread(d[None], onehot, extra)[0] - TINY
    extreme, step = 0, max(1, BLOCK // len(d))
    for start in range(0, resamples, step):
        drawn = rng.permuted(np.tile(d, (min(step, resamples - start), 1)), axis=1)
        extreme += int(np.sum(_spread(drawn, onehot, extra) >= observed))
    return (extreme + 1) / (resamples + 1)


def _spread(rows: Floats, onehot: Floats, extra: float) -> Floats:
    """Return how far the kinds' means lie apart, (m, n) differences to (m,) values."""
    n = onehot.sum(axis=0)
    means = rows @ onehot / n
    variances = (np.maximum(rows**2 @ onehot - n * means**2, 0) + extra) / n
    weights = n / variances
    centre = (weights * means).sum(axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True)
    return np.asarray((weights * (means - centre) ** 2).sum(axis=1))
