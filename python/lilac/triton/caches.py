"""Triton's in-memory caches, one for each compiler.

A JITFunction keeps the kernels it compiled in `device_caches`, an Autotuner the best configurations
in `cache`; both are attributes of the instance. While these descriptors are attributes of the classes, an
instance has one such cache for each compiler, and Triton sees the cache of the active compiler. If
lilac is not active, that is Triton's cache in its usual attribute.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Callable, Optional

_key: Optional[str] = None  # of the compiler that is switched on; None: Triton


def use(key: Optional[str]) -> None:
    global _key
    _key = key


class PerCompiler:
    """A data descriptor, which has precedence over the instance's attribute of the same name."""

    def __init__(self, name: str, make: Callable[[Any], Any]) -> None:
        self.name, self.make = name, make

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        attributes = instance.__dict__
        key = _key
        if key is None:
            try:
                return attributes[self.name]
            except KeyError:
                raise AttributeError(self.name) from None
        name = self.name + key
        cache = attributes.get(name)
        if cache is None:
            cache = attributes.setdefault(name, self.make(instance))
        return cache

    def __set__(self, instance: Any, value: Any) -> None:
        # The cache that the constructor creates is Triton's, whichever compiler is active.
        if _key is None or self.name not in instance.__dict__:
            instance.__dict__[self.name] = value
        else:
            instance.__dict__[self.name + _key] = value

    def __delete__(self, instance: Any) -> None:
        instance.__dict__.pop(self.name if _key is None else self.name + _key, None)


def install() -> None:
    """Puts the descriptors in place, once in a process. They stay: with Triton switched on they are
    plain access to the instance's attribute."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    if not isinstance(JITFunction.__dict__.get("device_caches"), PerCompiler):
        JITFunction.device_caches = PerCompiler("device_caches", lambda f: defaultdict(f.create_binder))
        Autotuner.cache = PerCompiler("cache", lambda tuner: {})
