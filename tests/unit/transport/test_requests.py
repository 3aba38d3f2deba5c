"""Tests of how requests for operations are judged, and of the status that each error of ours is told by."""

from collections.abc import Iterator

import pytest

from convmem.errors import CallerError, ConvmemError, OperatorError, RetryError
from convmem.transport import requests
from convmem.transport.guard import OVER_THE_SOCKET, WITH_TOKEN, WITHOUT_TOKEN, Refusal


def every_error() -> Iterator[type[ConvmemError]]:
    kinds = [ConvmemError]
    while kinds:
        for kind in kinds.pop().__subclasses__():
            kinds.append(kind)
            yield kind


@pytest.mark.parametrize("kind", list(every_error()), ids=lambda kind: kind.__name__)
def test_every_error_has_a_status_that_says_who_can_act(kind: type[ConvmemError]):
    error = kind("no", retry_after_ms=1) if issubclass(kind, RetryError) else kind("no")
    status = requests.status_of(error)
    if issubclass(kind, OperatorError):
        assert status == 500
    elif issubclass(kind, RetryError):
        assert status in (503, 507)
    else:
        assert issubclass(kind, CallerError)
        assert status in (400, 403, 409, 413, 500)


@pytest.mark.parametrize("caller", [OVER_THE_SOCKET, WITH_TOKEN, WITHOUT_TOKEN])
def test_only_who_is_on_the_machine_names_its_paths(caller):
    assert requests.forbidden({"caller": caller}) is None
    refusal = requests.forbidden({"caller": caller}, names_paths=True)
    assert (refusal is None) == (caller is OVER_THE_SOCKET)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", {}),
        (b"policy=reject", {"policy": "reject"}),
        (b"policy=re%6Aect&dry_run=", {"policy": "reject", "dry_run": ""}),
        (b"dry_run=a%20b", {"dry_run": "a b"}),
    ],
)
def test_arguments_of_a_query_are_read_as_they_are_meant(text: bytes, expected: dict[str, str]):
    assert requests.query({"query_string": text}, requests.IMPORT_QUERY) == expected


@pytest.mark.parametrize(
    "text",
    [b"policy", b"&", b"policy=a&", b"policy=a&policy=a", b"Policy=a", b"x=1", b"policy=a&%70olicy=b", b"=", b"\xff=1"],
)
def test_a_query_that_could_be_meant_in_two_ways_is_refused(text: bytes):
    refusal = requests.query({"query_string": text}, requests.IMPORT_QUERY)
    assert isinstance(refusal, Refusal)
    assert refusal.status == 400
    assert refusal.sentence.isascii()


@pytest.mark.parametrize(("value", "size"), [(b"17", 17), (b"x", 0), (b"-1", 0), (None, 0)])
def test_a_declared_size_is_a_number_or_none(value: bytes | None, size: int):
    assert requests.declared({} if value is None else {b"content-length": value}) == size
