"""Voyage AI's embedding models behind the `Embedder` Protocol.

In: texts and whether they are documents or queries. Out: unit vectors in the texts' order. Requests respect the model's
limits of texts and tokens; one that is refused as too long is split, and one that meets a rate limit waits: on the free
tier (3 requests and 10,000 tokens a minute) the rest goes on in small requests, a minute's worth at a time.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag.errors import InvalidValue, ProviderError
from rag.providers.asking import LONGEST_WAIT
from rag.providers.base import Kind, Vectors
from rag.providers.cache import Batch
from rag.providers.keys import find_address, find_key, without
from rag.providers.messages import member, read_count, read_wait
from rag.providers.models import voyage_model

log = logging.getLogger(__name__)
HOME = "https://api.voyageai.com/v1"
ATLAS = "https://ai.mongodb.com/v1"  # where keys that begin with al- belong
KEY = "VOYAGE_API_KEY"
DTYPES = ("float", "int8", "uint8", "binary", "ubinary")
MOST_TEXTS = 1000
SURELY = 30  # characters a token beyond which no model reads; the cookbook's longest texts are sent whole
FREE_TOKENS, FREE_REQUESTS = 10_000, 3  # a minute, without a payment method
TRIES = 8  # for one request
TIMEOUT = 120  # seconds

Dtype = Literal["float", "int8", "uint8", "binary", "ubinary"]


class Voyage:
    """A Voyage embedding model.

    Args:
        model: its id; `rag.providers.models` has its limits.
        api_key: instead of the environment's ``VOYAGE_API_KEY``.
        base_url: instead of the environment's ``VOYAGE_BASE_URL`` or the address that belongs to the key.
        typed: say whether a text is a document or a query, as the provider recommends; the cookbook does not.
        dimension: of the vectors, where the model offers several.
        dtype: how the numbers are sent; vectors come out as float32 of length 1 whatever it is.
        pause: how to wait, in seconds; for tests.
    """

    def __init__(
        self,
        model: str = "voyage-4",
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        typed: bool = True,
        dimension: int | None = None,
        dtype: Dtype = "float",
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        if dtype not in DTYPES:
            raise InvalidValue(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")
        self.model, self.row = model, voyage_model(model)
        self.typed, self.dimension, self.dtype, self.pause = typed, dimension, dtype, pause
        self._given_key, self._key = api_key, ""
        key = (api_key or os.environ.get(KEY) or "").strip()
        home = ATLAS if key.startswith("al-") else HOME
        self.base_url = find_address("VOYAGE_BASE_URL", home, base_url)
        self._free = False  # the service said that this is the free tier

    @property
    def name(self) -> str:
        """Return the model's id and whatever else changes its vectors."""
        parts = [self.model, "" if self.typed else "untyped", str(self.dimension or ""), self.dtype]
        return "-".join(part for part in parts if part not in ("", "float"))

    def request(self, text: str, kind: Kind) -> dict[str, Any]:
        """Return everything on the provider's side that can change a vector; part of the cache's key."""
        return {"provider": "voyage", "text": text, **self._fields(kind)}

    def _fields(self, kind: Kind) -> dict[str, Any]:
        return {
            "model": self.model,
            "input_type": kind if self.typed else None,
            "output_dimension": self.dimension,
            "output_dtype": None if self.dtype == "float" else self.dtype,
        }

    @property
    def width(self) -> int:
        """Return the number of dimensions."""
        return self.dimension or self.row.dimension

    def connect(self) -> str:
        """Return the key. Raises MissingKey if there is none."""
        self._key = self._key or find_key(KEY, given=self._given_key)
        return self._key

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return (n, d) float32 rows of length 1, in input order; see `batches`."""
        if isinstance(texts, str):
            raise TypeError("texts must be a list of texts, got one text")
        done = list(self.batches(texts, kind))
        if not done:
            return np.zeros((0, self.width), np.float32)
        order = np.argsort([row for batch in done for row in batch.rows], kind="stable")
        return np.concatenate([batch.vectors for batch in done])[order]

    # ------------------------------------------------------------------------------------------ requests

    def batches(self, texts: Sequence[str], kind: Kind, labels: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield the vectors of one request after the other, so that a caller can keep them at once.

        ``labels`` say what messages call the texts (a chunk's link), else their places and beginnings.

        Raises:
            MissingKey: if there is no key, before any request.
            ProviderError: if the service refuses a request, or has still not answered after the last try.
        """
        names = list(labels) if labels else [f"text {row}, {text[:60]!r}" for row, text in enumerate(texts)]
        self._report_cut(texts, names)
        texts = [text[: SURELY * self.row.context] for text in texts]  # the service cuts what is left
        left = [(row, self.tokens(text)) for row, text in enumerate(texts)]
        key = self.connect()
        while left:
            size = self._fitting([tokens for _, tokens in left])
            rows = [row for row, _ in left[:size]]
            for batch in self._split(rows, texts, kind, key, names):
                yield batch
                taken = set(batch.rows)
                left = [pair for pair in left if pair[0] not in taken]
                if self._free and left:
                    self.pause(60 * max(1 / FREE_REQUESTS, min(1.0, batch.tokens / FREE_TOKENS)))

    def tokens(self, text: str) -> int:
        """Estimate a text's tokens, on the high side (3 bytes each), at most what the model reads."""
        return min(len(text.encode("utf-8", "replace")) // 3 + 1, self.row.context)

    def plan(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the rows that go into each request."""
        sizes, requests, start = [self.tokens(text) for text in texts], list[list[int]](), 0
        while start < len(sizes):
            n = self._fitting(sizes[start:])
            requests.append(list(range(start, min(start + n, len(sizes)))))
            start += n
        return requests

    def _fitting(self, sizes: Sequence[int]) -> int:
        """Return how many of the next texts go into one request; at least one."""
        limit = FREE_TOKENS if self._free else self.row.batch_tokens
        total = np.cumsum(sizes[:MOST_TEXTS])
        return max(1, int(np.searchsorted(total, limit, side="right")))

    def _report_cut(self, texts: Sequence[str], names: Sequence[str]) -> None:
        """Say which texts are longer than what the model reads, all of them, with about how many tokens they have."""
        sizes = [likely_tokens(text) for text in texts]
        cut = [f"{names[row]} (about {size:,})" for row, size in enumerate(sizes) if size > self.row.context]
        if cut:
            log.warning(
                "%s reads %s tokens of a text: the end of %s is not embedded: %s",
                self.model, f"{self.row.context:,}", f"{len(cut)} texts" if len(cut) > 1 else "one", ", ".join(cut),
            )  # fmt: skip

    def _split(
        self, rows: list[int], texts: Sequence[str], kind: Kind, key: str, names: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield a request's vectors; where it is refused as too long, its halves'."""
        answer = self._patient([texts[row] for row in rows], kind, key, [names[row] for row in rows])
        if isinstance(answer, tuple):
            yield Batch(rows, *answer)
        elif len(rows) == 1:
            raise self._refused(f"{names[rows[0]]} ({len(texts[rows[0]]):,} characters): {answer}")
        else:
            middle = len(rows) // 2
            yield from self._split(rows[:middle], texts, kind, key, names)
            yield from self._split(rows[middle:], texts, kind, key, names)

    def _patient(self, texts: list[str], kind: Kind, key: str, names: Sequence[str]) -> tuple[Vectors, int] | str:
        """Return vectors and tokens, waiting where that helps; or the reason, if the request should be smaller."""
        from voyageai import error as errors

        why = ""
        for attempt in range(TRIES):
            try:
                return self._once(texts, kind, key, names)
            except errors.RateLimitError as error:
                why = without(key, error.user_message)
                if self._is_free_tier(why) and sum(map(self.tokens, texts)) > FREE_TOKENS and len(texts) > 1:
                    return why
                wait = asked_for(error, min(60.0, 20.0 * (attempt + 1)))
            except (errors.ServiceUnavailableError, errors.ServerError, errors.Timeout, errors.APIConnectionError) as e:
                why, wait = without(key, e), asked_for(e, min(30.0, 2.0**attempt))
            except errors.InvalidRequestError as error:
                if "token" in str(error.user_message).lower():
                    return without(key, error.user_message)
                raise self._refused(without(key, error.user_message)) from None
            except OSError as error:  # of certificates that are not there
                raise self._refused(without(key, error)) from None
            except errors.VoyageError as error:
                said = f"{error.http_status} {without(key, error.user_message)}"
                raise self._refused(f"{said}; check {KEY}" if error.http_status in (401, 403) else said) from None
            if attempt + 1 < TRIES:
                log.warning("%s: %s; waiting %.0f s", self.model, why, wait)
                self.pause(wait)
        raise self._refused(f"{why}, after {TRIES} tries")

    def _is_free_tier(self, said: str) -> bool:
        if not self._free and ("payment" in said or "RPM" in said):
            self._free = True
            log.warning("%s: this key is on the free tier, so the rest goes slowly", self.model)
        return self._free

    def _once(self, texts: list[str], kind: Kind, key: str, names: Sequence[str]) -> tuple[Vectors, int]:
        voyageai: Any = import_module("voyageai")
        try:
            answer = voyageai.Embedding.create(
                input=texts, truncation=True, api_key=key, base_url=self.base_url, request_timeout=TIMEOUT,
                **self._fields(kind),
            )  # fmt: skip
            data = in_order(answer["data"], len(texts))
            numbers = np.array([item["embedding"] for item in data or []], np.float64)
        except UNREADABLE as error:
            raise self._refused(f"the service's answer cannot be read ({type(error).__name__})") from None
        if data is None:
            raise self._refused(f"{len(texts)} texts were sent, {len(answer['data'])} vectors came back")
        if numbers.ndim != 2:
            raise self._refused(f"the service sent no vectors but {str(data[0]['embedding'])[:40]}")
        usable = np.isfinite(numbers).all(axis=1) & (self.dtype != "float" or (numbers != 0).any(axis=1))
        if not usable.all():
            raise self._refused(f"the service sent no usable vector for {names[int(np.argmin(usable))]}")
        used = member(answer.get("usage"), "total_tokens")
        tokens = sum(map(self.tokens, texts)) if used is None else read_count(used)
        if tokens is None:
            raise self._refused(f"the service's usage cannot be: total_tokens is {str(used)[:40]}")
        return unit_rows(numbers if self.dtype == "float" else numbers.astype(np.int64), self.dtype), tokens

    def _refused(self, said: str) -> ProviderError:
        return ProviderError(f"embed: {self.model}: {said}")


def unit_rows(numbers: npt.NDArray[Any], dtype: str) -> Vectors:
    """Return vectors as float32 rows of length 1, whatever they were sent as.

    Bits are unpacked, most significant first, and count as -1 and 1; ``binary`` holds them shifted by 128.

    >>> unit_rows(np.array([[3, 4]]), "int8").tolist(), unit_rows(np.array([[0]]), "binary").round(2)[0, :2].tolist()
    ([[0.6000000238418579, 0.800000011920929]], [0.3499999940395355, -0.3499999940395355])
    """
    if dtype in ("binary", "ubinary"):
        packed = (numbers.astype(np.int16) + (128 if dtype == "binary" else 0)).astype(np.uint8)
        numbers = np.unpackbits(packed, axis=1).astype(np.float32) * 2 - 1
    if dtype == "uint8":
        numbers = numbers.astype(np.float32) - 128
    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    if not np.all(np.isfinite(lengths)) or not np.all(lengths):
        bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)).ravel()).tolist()
        raise ProviderError(f"embed: the service sent no usable vector for texts {bad} of the request")
    return np.asarray(numbers / lengths, np.float32)


# What the SDK raises, or what reading raises, where an answer has not the form that it should have: no JSON, no UTF-8,
# broken base64, members that are missing or of another type, ragged vectors.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


def in_order(data: Any, n: int) -> list[dict[str, Any]] | None:
    """Return n items by their index 0 to n-1, None if these are others. Raises one of UNREADABLE if they are no items.

    >>> in_order([{"index": 1}, {"index": 0}], 2), in_order([{"index": 1}], 2)
    ([{'index': 0}, {'index': 1}], None)
    """
    items = sorted(data, key=lambda item: int(item["index"]))
    return items if [item["index"] for item in items] == list(range(n)) else None


def likely_tokens(text: str) -> int:
    """Return about how many tokens a text has: four ASCII characters each, or three bytes of others.

    >>> likely_tokens("word " * 8), likely_tokens("東京")
    (10, 2)
    """
    size = len(text.encode("utf-8", "replace"))
    plain = sum(character < "\x80" for character in text)
    return round(plain / 4 + (size - plain) / 3)


def asked_for(error: Any, otherwise: float) -> float:
    """Return the seconds to wait: what the service asks for, at most two minutes, or those that are meant otherwise."""
    headers = getattr(error, "headers", None)
    asked = read_wait(headers.get("retry-after")) if isinstance(headers, Mapping) else None
    if asked is not None and asked > LONGEST_WAIT:
        log.warning("the service asks to wait %.0f s; it is asked again after %.0f s", asked, LONGEST_WAIT)
    return otherwise if asked is None else min(asked, LONGEST_WAIT)
