"""Scenario files of crowdveil, and the schema that reads them."""

from scenarios.errors import Fault, ScenarioError
from scenarios.loader import Shipped, dump, load, shipped, source_text, template, write_template
from scenarios.overrides import Overrides
from scenarios.references import files_of, locate
from scenarios.scenario import Scenario, schema
