"""Claims of mechanisms that ask one question about each cell, once or several times."""

from mechanisms.local.parts.question import Question
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.one_round import released_reports_claim
from mechanisms.privacy.per_cell import per_cell_claim
from mechanisms.privacy.shares import shares_claim
from mechanisms.privacy.shuffled import shuffled_claim
from mechanisms.privacy.view import LinkedReports, ReleasedDifferences, Report, Shares, Shuffled, View


def question_claim(view: View, question: Question, *, cells: int, source: str) -> PrivacyClaim:
    """Return what a view tells: exact for one query, from the laws of one round's answer or of all of them.

    Parameters
    ----------
    view : View
    question : Question
        The law of the answers.
    cells : int
        The number of cells V, each asked about with its own coins.
    source : str
        Equations the law is from.

    Returns
    -------
    PrivacyClaim
        Its basis names an answer that tells with certainty, where there is one.
    """
    telling = _telling(question)
    whole = f"{source}; {telling}" if telling else source

    def linked(queries: int) -> PrivacyClaim:
        return per_cell_claim(question.yes, question.no, cells=cells, queries=queries, source=whole)

    def alone(round_: int, queries: int) -> PrivacyClaim:
        if question.rounds == 1:
            return linked(queries)
        yes, no = question.in_round(round_)
        return per_cell_claim(yes, no, cells=cells, queries=queries, source=f"{source}, round {round_} alone")

    if isinstance(view, ReleasedDifferences):
        return PrivacyClaim.unknown("The mechanism publishes no differences of two rounds' counts.")
    if isinstance(view, Report | Shuffled) and view.round > question.rounds:
        return PrivacyClaim.unknown(f"The mechanism has {question.rounds} round(s) only.")
    if isinstance(view, Report):
        return alone(view.round, view.queries)
    if isinstance(view, Shuffled):
        return shuffled_claim(view, local=alone(view.round, view.queries), single=alone(view.round, 1))
    if isinstance(view, Shares):
        return shares_claim(view, linked=linked(view.queries))
    return linked(view.queries) if isinstance(view, LinkedReports) else released_reports_claim(linked(view.queries))


def _telling(question: Question) -> str:
    """Name the answers that tell with certainty; nothing, if there are none."""
    parts = []
    for answers, who in ((question.told_by_yes, "in the cell"), (question.told_by_no, "not in it")):
        if answers:
            parts.append(f"{question.name(answers[0])} is given only by a device {who}")
    return ", ".join(parts)
