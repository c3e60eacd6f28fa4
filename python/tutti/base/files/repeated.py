"""Keys that a table defines twice: JSON and YAML parsers keep the last value without a remark."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tutti.base.files import limits
from tutti.base.files.mistakes import mistake

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from tutti.base.errors import ConfigError


def checked_pairs(source: str) -> Callable[[Iterable[tuple[Any, Any]]], dict[Any, Any]]:
    """Returns a function that makes a table of keys and values, such as `object_pairs_hook`.

    It raises a `ConfigError` that names `source` if a key has two values that differ.
    """

    def table(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
        values: dict[Hashable, Any] = {}
        for key, value in pairs:
            if key in values and values[key] != value:
                raise _twice(key, source)
            values[key] = value
        return values

    return table


def load_yaml(text: str, source: str) -> Any:  # noqa: ANN401 - any value
    """Returns the value of a YAML text, as `yaml.safe_load` does.

    Raises:
        ConfigError: A mapping defines a key twice, which YAML forbids.
        RecursionError: Brackets are nested more than `limits.DEPTH` levels deep.
        YAMLError: The text is not YAML.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        def fetch_flow_collection_start(self, token: type[yaml.Token]) -> None:
            # The scanner looks 1,024 characters ahead, and at every open bracket for each of them.
            if self.flow_level == limits.DEPTH:
                raise RecursionError
            super().fetch_flow_collection_start(token)

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            # Keys of a merge (`<<`) may be defined again, and are not in `value` yet.
            keys = [(key.tag, key.value) for key, _ in node.value if isinstance(key.value, str)]
            for (_, key), count in Counter(keys).items():
                if count > 1:
                    raise _twice(key, source)
            return super().construct_mapping(node, deep=deep)

    return yaml.load(text, Loader)  # noqa: S506 - derived from SafeLoader


def _twice(key: object, source: str) -> ConfigError:
    return mistake(f"defines the key `{key}` twice", source=source, expected="each key once")
