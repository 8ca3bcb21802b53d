"""Triton's in-memory caches, one for each compiler.

A JITFunction keeps the kernels it compiled in `device_caches`, an Autotuner the best configurations
in `cache`; both are attributes of the instance. The attribute is always the cache of the active compiler. The
caches of the other compilers are attributes of the same instance under other names, and a change of the
compiler exchanges them. A launch therefore reads a plain attribute, as without lilac.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections import defaultdict
from typing import Any, Callable, Optional

_key: Optional[str] = None  # of the compiler that is switched on; None: Triton
_instances: dict[int, weakref.ref[Any]] = {}  # by id: the hash of a JITFunction is that of its source
_kinds: list[tuple[type, str, Callable[[Any], Any]]] = []  # class, attribute, an empty cache for an instance


def _stored(name: str, key: Optional[str]) -> str:
    """The name of the attribute for a compiler that is not active."""
    return f"{name} of {key or 'triton'}"


def _register(instance: Any) -> None:
    number = id(instance)
    if number not in _instances:
        _instances[number] = weakref.ref(instance, lambda _: _instances.pop(number, None))


def _exchange(instance: Any, before: Optional[str], after: Optional[str]) -> None:
    attributes = vars(instance)
    for kind, name, empty in _kinds:
        if isinstance(instance, kind) and name in attributes:
            attributes[_stored(name, before)] = attributes[name]
            stored = attributes.pop(_stored(name, after), None)
            attributes[name] = empty(instance) if stored is None else stored


def use(key: Optional[str]) -> None:
    """Makes the caches of a compiler those that Triton reads."""
    global _key
    before, _key = _key, key
    if before == key:
        return
    for reference in list(_instances.values()):
        instance = reference()
        if instance is not None:
            _exchange(instance, before, key)


def _registering(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def __init__(self: Any, *arguments: Any, **words: Any) -> None:
        original(self, *arguments, **words)
        _register(self)

    return __init__


def install() -> None:
    """Registers every function and every autotuner, those that exist and those to come; once in a
    process."""
    if _kinds:
        return
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    _kinds.append((JITFunction, "device_caches", lambda function: defaultdict(function.create_binder)))
    _kinds.append((Autotuner, "cache", lambda tuner: {}))
    classes = tuple(kind for kind, _, _ in _kinds)
    for instance in gc.get_objects():
        if issubclass(type(instance), classes):
            _register(instance)
    for kind in classes:
        kind.__init__ = _registering(kind.__init__)  # type: ignore[misc]
