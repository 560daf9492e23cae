"""Messages of wrong arguments: one line with the argument, the rule, the value received and a suggestion."""

from typing import Any

from typer import TyperException

from scenarios.suggestions import suggestion


def message_of(error: TyperException) -> str:
    """Return the message of an error that typer raised for the arguments of a command, or a command for its own."""
    given: Any = error
    if (option := getattr(given, "option_name", None)) is not None and hasattr(given, "possibilities"):
        options = [name for parameter in given.ctx.command.get_params(given.ctx) for name in parameter.opts]
        return f"there is no option {option}{suggestion(option, options)}; {given.ctx.command_path} -h lists them"
    parameter, hint = getattr(given, "param", None), getattr(given, "param_hint", None)
    if parameter is None:
        text: str = given.message.rstrip(".")
        return f"{hint}: {text}" if hint else text[:1].lower() + text[1:]
    name = parameter.opts[0] if parameter.param_type_name == "option" else parameter.display_name_raw
    if hasattr(given, "param_type"):  # it was not given
        help_ = f" ({parameter.help.rstrip('.')})" if parameter.help else ""
        return f"{name}: is required{help_}"
    faults: list[Any] = getattr(given.__cause__, "errors", list)()
    received = faults[0]["input"] if faults else None
    rule = _rule(parameter, received) or given.message
    return f"{name}: {rule}; got {received!r}" if faults else f"{name}: {rule}"


def _rule(parameter: Any, received: object) -> str:
    """Return the rule that the values of a parameter follow, if it is known: a list of choices, or a kind of number."""
    described = parameter.type_descriptor
    if described.choices is not None:
        choices = [str(getattr(choice, "value", choice)) for choice in described.choices]
        return f"must be one of {', '.join(choices)}{suggestion(received, choices)}"
    if described.annotation not in {int, float}:
        return ""
    number = "must be a whole number" if described.annotation is int else "must be a number"
    unit = f" of {parameter.metavar.lower()}" if parameter.metavar else ""
    least, most = described.parameter_info.min, described.parameter_info.max
    limits = [f"at least {least:g}"] if least is not None else []
    limits += [f"at most {most:g}"] if most is not None else []
    return f"{number}{unit}{', ' if limits else ''}{' and '.join(limits)}"
