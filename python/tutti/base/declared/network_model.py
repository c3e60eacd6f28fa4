"""The parameters that every network model has: the costs of local work."""

from __future__ import annotations

from tutti import _core
from tutti.base.declared.groups import LocalCosts

__all__ = ["NetworkModel"]


class NetworkModel(LocalCosts):
    """A model of how long messages take, and what local work costs."""

    kind: str

    def parameters(self) -> dict[str, str]:
        """Returns the model's own parameters as text, under the names that the core knows."""
        own = type(self).model_fields.keys() - LocalCosts.model_fields.keys() - {"kind"}
        return {name: text for name, text in self.texts(type(self)).items() if name in own}

    def __str__(self) -> str:
        """Returns the model in the notation of configuration, without the costs of local work."""
        given = ", ".join(f"{name}={text}" for name, text in self.parameters().items())
        return f"{self.kind}({given})"

    @property
    def core(self) -> _core.Model:
        """The core's model.

        Raises:
            ModelError: The parameters make no sense together.
        """
        return _core.Model(self.kind, self.parameters(), self.texts(LocalCosts))
