"""Registries of named things: those of this package, and those of plug-ins.

A plug-in is any installed package with an entry point in one of our groups. It is loaded when its
name is asked for, so a broken plug-in, or two of one name, harm only those who use that name.
"""

from __future__ import annotations

import hashlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module, metadata, util
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")


class PluginError(Exception):
    """A plug-in that cannot be used."""


class PluginBroken(PluginError):
    """Loading a plug-in failed."""

    def __init__(self, plugin: Plugin, cause: object) -> None:
        super().__init__(
            f"package {plugin.package} {plugin.version}: entry point {plugin.name!r} of group"
            f" {plugin.group} ({plugin.target}) cannot be loaded: {cause}. Mend or uninstall it."
        )


class NameTaken(PluginError):
    """Two packages register the same name."""

    def __init__(self, kind: str, name: str, packages: list[str]) -> None:
        super().__init__(
            f"{kind} {name!r} is registered by {' and by '.join(packages)}: uninstall one of them"
        )


@dataclass(frozen=True)
class Plugin:
    """An entry point of an installed package."""

    group: str
    name: str
    target: str
    """`module:object`, as the package declares it."""
    package: str
    version: str

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the Python sources that the entry point belongs to, in hex.

        These are all sources of its top-level package, or the one module if it is no package.
        """
        top = self.target.partition(":")[0].partition(".")[0]
        found = util.find_spec(top)
        if found is None or found.origin is None:
            raise PluginBroken(self, f"module {top} has no source")
        origin = Path(found.origin)
        root = origin.parent
        files = sorted(root.rglob("*.py")) if found.submodule_search_locations else [origin]
        digest = hashlib.sha256()
        for path in files:
            content = path.read_bytes()
            name = path.relative_to(root).as_posix()
            digest.update(f"{name} {len(content)}\n".encode() + content)
        return digest.hexdigest()

    def load(self) -> Any:
        entry = metadata.EntryPoint(self.name, self.target, self.group)
        try:
            return entry.load()
        except (Exception, SystemExit) as error:  # a script without a main guard may exit
            raise PluginBroken(self, f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class LocalPlugin(Plugin):
    """An object of this process, such as a class of a script or a notebook."""

    source: str

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the source of the class or function, in hex."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    @classmethod
    def of(cls, group: str, name: str, found: object) -> LocalPlugin:
        kind = found if inspect.isclass(found) or inspect.isroutine(found) else type(found)
        target = f"{kind.__module__}:{kind.__qualname__}"
        try:
            source = inspect.getsource(kind)
        except (OSError, TypeError):
            source = target  # typed into an interpreter
        return cls(group, name, target, "(this process)", "", source)


class Registry(Mapping[str, T]):
    """Things of one kind by name. Names of this package cannot be taken by a plug-in."""

    def __init__(
        self,
        kind: str,
        group: str,
        builtin: Mapping[str, T],
        unknown: Callable[[str, list[str]], Exception],
        check: Callable[[Any], bool] = lambda found: True,
        name_of: Callable[[Any], str] | None = None,
    ) -> None:
        """`kind` is for messages; `check` tells whether a plug-in's object is of this kind.

        `name_of` returns the name that an object gives itself, which must be that of its entry
        point: documents have the one, and the registry looks for the other.
        """
        self.kind = kind
        self.group = group
        self._builtin = builtin
        self._unknown = unknown
        self._check = check
        self._name_of = name_of
        self._loaded: dict[str, T] = {}

    def names(self) -> list[str]:
        return [*self._builtin, *sorted(self._plugins)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self._builtin or name in self._plugins

    def __getitem__(self, name: str) -> T:
        self._require_one_owner(name)
        if name in self._builtin:
            return self._builtin[name]
        if name not in self._loaded:
            plugin = self.plugin(name)
            if plugin is None:
                raise self._unknown(name, self.names())
            found = plugin.load()
            self._require_kind(plugin, found)
            self._loaded[name] = found
        return self._loaded[name]

    def plugin(self, name: str) -> Plugin | None:
        """Return the plug-in of this name; None if the name is ours or unknown."""
        self._require_one_owner(name)
        return None if name in self._builtin else self._plugins.get(name)

    @contextmanager
    def plugged_in(self, name: str, found: T) -> Iterator[None]:
        """Register an object of this process as a plug-in while the context lasts.

        Other processes do not see it: for the daemons of a job, install it as a package.
        """
        plugin = LocalPlugin.of(self.group, name, found)
        if name in self:
            owner = self.plugin(name)
            owners = [owner.package if owner else "opfl_chain", plugin.package]
            raise NameTaken(self.kind, name, owners)
        self._require_kind(plugin, found)
        self._plugins[name], self._loaded[name] = plugin, found
        try:
            yield
        finally:
            del self._plugins[name], self._loaded[name]

    def _require_kind(self, plugin: Plugin, found: object) -> None:
        if not self._check(found):
            article = "an" if self.kind[0] in "aeiou" else "a"
            raise PluginBroken(plugin, f"{found!r} is not {article} {self.kind}")
        if self._name_of and (own := self._name_of(found)) != plugin.name:
            raise PluginBroken(plugin, f"it calls itself {own!r}: the names must be the same")

    def _require_one_owner(self, name: str) -> None:
        if rivals := self._rivals.get(name):
            raise NameTaken(self.kind, name, rivals)

    @cached_property
    def _plugins(self) -> dict[str, Plugin]:
        return {each.name: each for each in installed(self.group) if each.name not in self._builtin}

    @cached_property
    def _rivals(self) -> dict[str, list[str]]:
        """The packages of each name that several of them register."""
        owners: dict[str, set[Plugin]] = {}
        for plugin in installed(self.group):
            owners.setdefault(plugin.name, set()).add(plugin)
        packages = {name: sorted(each.package for each in owners[name]) for name in owners}
        ours = {name: ["opfl_chain"] for name in self._builtin}
        found = {name: ours.get(name, []) + packages[name] for name in packages}
        return {name: each for name, each in found.items() if len(each) > 1}


def installed(group: str) -> list[Plugin]:
    """Return the plug-ins of a group on this machine, without loading them."""
    return [
        Plugin(
            group,
            entry.name,
            entry.value,
            entry.dist.name if entry.dist else "(unknown)",
            entry.dist.version if entry.dist else "",
        )
        for entry in metadata.entry_points(group=group)
    ]


def classes_in(package: ModuleType, accept: Callable[[Any], bool]) -> list[Any]:
    """Return the classes that the modules of a package define, in order of modules and lines.

    So that a new file in the package's folder needs no entry elsewhere.
    """
    found: list[Any] = []
    for each in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        own = vars(import_module(each.name)).values()
        classes = [value for value in own if inspect.isclass(value)]
        found += [value for value in classes if value.__module__ == each.name and accept(value)]
    return found
