"""The network that a topology script of gem5 describes, for options of gem5's command line."""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING, Any, Final, NoReturn

from tutti.base.files.mistakes import mistake
from tutti.formats.garnet.network import MOST_CONTROLLERS, NetworkBuilder, Place
from tutti.formats.garnet.script import (
    Instance,
    Interpreter,
    Made,
    Maker,
    Names,
    Options,
    ScriptError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.formats.garnet.network import GarnetNetwork

_PARAMETERS: Final = ("self", "options", "network", "IntLink", "ExtLink", "Router")
_EXPECTED: Final = "a topology script of gem5: a class with makeTopology"
_HINT: Final = "the config.ini of a run of gem5 lists all links: tutti noc from-garnet config.ini"
CONTROLLERS: Final = {
    "num_cpus": "L1Cache_Controller",
    "num_l2caches": "L2Cache_Controller",
    "num_dirs": "Directory_Controller",
    "num_dmas": "DMA_Controller",
}
"""The controllers of each option, in the order in which gem5's protocols list them."""


def read_script(text: str, options: Options, *, source: str) -> GarnetNetwork:
    """Reads a script.

    Args:
        text: The script.
        options: Options of gem5; those that the script reads must be here.
        source: The file, for errors.

    Raises:
        ConfigError: The script is not Python, does more than describe links, or describes an
            invalid network. The message names the line.
    """
    tree = _parsed(text, source)
    try:
        return _built(tree, options, source)
    except ScriptError as error:
        place = source if error.line is None else f"{source}:{error.line}"
        hint = error.hint or _HINT
        raise mistake(error.problem, source=place, expected=error.expected, hint=hint) from None
    except RecursionError:
        raise mistake("expressions are nested too deeply", source=source, expected=_EXPECTED,
                      hint=_HINT) from None  # fmt: skip


def _parsed(text: str, source: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        place = f"{source}:{error.lineno}" if error.lineno else source
        hint = _HINT
        if "print" in str(error.msg):
            hint = "Python 2: write print(...), or use a script of a current gem5"
        raise mistake(f"not Python 3: {error.msg}", source=place, expected=_EXPECTED,
                      hint=hint) from None  # fmt: skip
    except (ValueError, RecursionError, MemoryError):
        raise mistake("not Python 3", source=source, expected=_EXPECTED, hint=_HINT) from None


def _built(tree: ast.Module, given: Options, source: str) -> GarnetNetwork:
    options, interpreter = given.values, Interpreter()
    plain = [each for each in tree.body if not isinstance(each, ast.ClassDef)]
    interpreter.run(plain, interpreter.globals)
    topology = _topology(tree, interpreter, options, source)
    controllers = _controllers(options, source)
    topology.values |= {"nodes": controllers}
    network = Instance("network", {"routers": [], "ext_links": [], "int_links": []})
    makers = [Maker(name) for name in _PARAMETERS[3:]]
    if "__init__" in topology.functions and _takes(topology.functions["__init__"], 2):
        interpreter.call(_of(interpreter, topology, "__init__"), [list(controllers)], {})
    make = topology.functions["makeTopology"]
    if not _takes(make, len(_PARAMETERS)):
        names = ", ".join(each.arg for each in make.args.args)
        error = ScriptError(f"makeTopology has the parameters {names}", ", ".join(_PARAMETERS))
        error.line = make.lineno
        raise error
    interpreter.call(_of(interpreter, topology, "makeTopology"), [given, network, *makers], {})
    return _network(network, controllers, options, source)


def _topology(
    tree: ast.Module, interpreter: Interpreter, options: Mapping[str, Any], source: str
) -> Instance:
    """Returns the topology of the file, with the attributes and methods of its class."""
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
    able = [each for each in classes if "makeTopology" in _methods(each)]
    name = options.get("topology")
    chosen = [each for each in able if name in (None, each.name)]
    if len(chosen) != 1:
        known = ", ".join(each.name for each in able) or "none"
        raise mistake(
            "has several topologies" if chosen else "has no such topology" if able
            else "has no class with makeTopology",
            source=source,
            expected=f"topology=NAME, one of {known}" if able else _EXPECTED,
            hint=_HINT,
        )  # fmt: skip
    body = chosen[0].body
    methods = _methods(chosen[0])
    attributes = Names({}, interpreter.globals)
    interpreter.run([each for each in body if isinstance(each, ast.Assign)], attributes)
    return Instance("topology", attributes.values, methods)


def _methods(of: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {each.name: each for each in of.body if isinstance(each, ast.FunctionDef)}


def _of(interpreter: Interpreter, topology: Instance, name: str) -> Any:  # noqa: ANN401
    bound = ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load())
    return interpreter.value(bound, Names({"self": topology}))


def _takes(function: ast.FunctionDef, count: int) -> bool:
    return len(function.args.args) == count


def _controllers(options: Mapping[str, Any], source: str) -> list[Made]:
    found: list[Made] = []
    for option, kind in CONTROLLERS.items():
        count = options.get(option, 0)
        if not isinstance(count, int) or not 0 <= count <= MOST_CONTROLLERS:
            raise mistake(f"`{option}` is {str(count)[:60]}", source=source,
                          expected=f"an integer from 0 to {MOST_CONTROLLERS:,}")  # fmt: skip
        found += [Made(kind, 0, {"type": kind, "version": number}) for number in range(count)]
    if len(found) < 2:
        raise mistake("has fewer than two controllers", source=source,
                      expected="num_cpus=N after the file, 2 or more",
                      hint="gem5 takes the number from --num-cpus: add num_cpus=16")  # fmt: skip
    return found


def _network(
    network: Instance, controllers: list[Made], options: Mapping[str, Any], source: str
) -> GarnetNetwork:
    """Returns what a script assigned to `network`."""
    bits = int(options["link_width_bits"])
    kinds = [controller.kind for controller in controllers]
    builder = NetworkBuilder(source, bits, kinds)
    expected = {"routers": "Router", "ext_links": "ExtLink", "int_links": "IntLink"}
    lists = {name: _list(network, name, kind, source) for name, kind in expected.items()}
    for router in lists["routers"]:
        builder.router(_place(router, source))
    known = {id(router): router for router in lists["routers"]}
    number = {id(controller): index for index, controller in enumerate(controllers)}

    def router_of(link: Made, key: str) -> int:
        router = link.values.get(key)
        if id(router) not in known:
            hint = "" if "node_a" not in link.values else "node_a and node_b are those of old gem5"
            _refuse(link, source, f"`{key}` is not a router of network.routers",
                    f"{key}=routers[N]", hint)  # fmt: skip
        return int(known[id(router)].values["router_id"])

    for link in lists["ext_links"]:
        controller = number.get(id(link.values.get("ext_node")))
        if controller is None:
            _refuse(link, source, "`ext_node` is not a controller", "ext_node=nodes[N]")
        builder.ext_link(_place(link, source), controller, router_of(link, "int_node"))
    for link in lists["int_links"]:
        ends = router_of(link, "src_node"), router_of(link, "dst_node")
        builder.int_link(_place(link, source), *ends)
    return builder.network()


def _list(network: Instance, name: str, kind: str, source: str) -> list[Made]:
    found = network.values.get(name)
    if isinstance(found, Made):
        found = [found]
    values = found if isinstance(found, list | tuple) else [None]
    for each in values:
        if not isinstance(each, Made) or each.kind != kind:
            raise mistake(f"`network.{name}` is not a list of {kind}", source=source,
                          expected=f"network.{name} = [{kind}(...), ...]")  # fmt: skip
    return list(values)


def _place(made: Made, source: str) -> Place:
    values = {
        key: "an object" if isinstance(value, Made) else value for key, value in made.values.items()
    }
    return Place(f"{source}:{made.line}", values)


def _refuse(made: Made, source: str, problem: str, expected: str, hint: str = "") -> NoReturn:
    raise mistake(problem, source=f"{source}:{made.line}", expected=expected, hint=hint)
