from . import coherence as coherence
from . import flit as flit
from . import mesh as mesh
from .flit import MeasurementPlan as MeasurementPlan
from .flit import Network as Network
from .flit import Router as Router
from .flit import Traffic as Traffic
from .mesh import SmartMesh as SmartMesh
