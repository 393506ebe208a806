"""A model is loaded once by whoever uses it first, and again only after nobody has used it for a while."""

import asyncio
import weakref
from threading import Barrier

import pytest

from parley.convergence.held_model import IDLE_SECONDS, HeldModel, release_idle_models
from parley.runtime.errors import ConfigurationError
from tests.support.manual_clock import ManualClock


class Model:
    """Something that can be looked for after it was released."""


class Loading:
    """Counts loads, and knows whether the last model is still there."""

    def __init__(self, clock: ManualClock) -> None:
        self.loads = 0
        self.last: weakref.ref[Model] | None = None
        self.held = HeldModel(self._load, clock)

    @property
    def is_there(self) -> bool:
        return self.last is not None and self.last() is not None

    def use(self) -> None:
        with self.held.use():
            pass

    def _load(self) -> Model:
        self.loads += 1
        model = Model()
        self.last = weakref.ref(model)
        return model


async def test_a_model_that_nobody_uses_is_released_and_loaded_again_when_it_is_used() -> None:
    clock = ManualClock()
    loading = Loading(clock)
    releasing = asyncio.create_task(release_idle_models([loading.held], clock))
    try:
        assert loading.loads == 0, "nothing is loaded before it is used"
        loading.use()
        loading.use()
        await clock.sleeping()
        clock.advance(IDLE_SECONDS / 2)
        await clock.sleeping()
        assert (loading.loads, loading.is_there) == (1, True)
        loading.use()
        clock.advance(IDLE_SECONDS - 1)
        await clock.sleeping()
        assert loading.is_there, "each use counts anew"
        clock.advance(31)
        await clock.sleeping()
        assert (loading.loads, loading.is_there) == (1, False)
        loading.use()
        assert (loading.loads, loading.is_there) == (2, True)
    finally:
        releasing.cancel()


async def test_a_model_in_use_stays_however_long_that_takes() -> None:
    clock = ManualClock()
    loading = Loading(clock)
    with loading.held.use():
        clock.advance(10 * IDLE_SECONDS)
        loading.held.release_if_idle()
        assert loading.is_there
    loading.held.release_if_idle()
    assert loading.is_there, "it was used until now"


async def test_threads_that_use_a_model_at_once_load_it_once() -> None:
    loading, together = Loading(ManualClock()), Barrier(4, timeout=30)

    def use() -> None:
        together.wait()
        with loading.held.use():
            together.wait()

    await asyncio.gather(*(asyncio.to_thread(use) for _ in range(4)))
    assert loading.loads == 1


async def test_a_load_that_fails_is_tried_again_by_the_next_use() -> None:
    answers = [ConfigurationError("missing"), None]

    def load() -> str:
        if (error := answers.pop(0)) is not None:
            raise error
        return "model"

    held = HeldModel(load, ManualClock())
    with pytest.raises(ConfigurationError), held.use():
        pass
    with held.use() as model:
        assert model == "model"
