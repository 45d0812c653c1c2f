"""Which errors pass: a service's trouble of the moment, as its SDK, requests or httpx raise it; no other does."""

from rag.cookbook.levels import CallFailed
from rag.providers.asking import PASSING

PASSING_NAMES = {
    *("APIConnectionError", "APITimeoutError", "RateLimitError", "ServiceUnavailableError", "Timeout", "TryAgain"),
    *("ConnectionError", "NetworkError", "TimeoutException", "RemoteProtocolError"),  # of requests and httpx
}


def is_passing(error: BaseException) -> bool:
    """Tell whether an error is a provider's passing trouble: no connection, a rate limit, an overloaded service.

    >>> is_passing(TimeoutError()), is_passing(KeyError("chunk_link"))
    (True, False)
    """
    status = getattr(error, "status_code", None) or getattr(error, "http_status", None)
    status = status or getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        return status in PASSING or status >= 500
    names = {cls.__name__ for cls in type(error).__mro__}
    return isinstance(error, CallFailed | ConnectionError | TimeoutError) or not names.isdisjoint(PASSING_NAMES)
