from __future__ import annotations

import threading

import pytest
import torch
from threadpoolctl import threadpool_limits

from icl_estimators.transformer.kernel.threads import over_threads


@pytest.mark.parametrize("count", [1, 2, 7, 64])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_item_once_in_one_piece_a_thread(count, threads):
    seen: list[tuple[int, int, int]] = []
    lock = threading.Lock()
    barrier = threading.Barrier(min(count, threads))

    def work(first, last):
        barrier.wait(10)  # so that all pieces are under way together
        with lock:
            seen.append((first, last, threading.get_ident()))

    over_threads(work, count, threads)
    assert sorted(item for first, last, _ in seen for item in range(first, last)) == list(range(count))
    assert len({ident for *_, ident in seen}) == len(seen) == min(count, threads)


def test_as_many_as_torch_has():
    pieces: list[int] = []
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        over_threads(lambda first, last: pieces.append(first), 9)
        assert len(pieces) == 3
        with threadpool_limits(limits=1):  # as a block of evaluate
            over_threads(lambda first, last: pieces.append(first), 9)
        assert len(pieces) == 4
    finally:
        torch.set_num_threads(before)


def test_an_error_of_a_thread_arrives():
    def work(first, last):
        if first:
            raise ValueError("of a piece")

    with pytest.raises(ValueError, match="of a piece"):
        over_threads(work, 4, 2)
