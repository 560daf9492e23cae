"""Claims of mechanisms that ask one question about each cell, once or several times."""

from mechanisms.local.parts.question import Question
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.per_cell import per_cell_claim
from mechanisms.privacy.view import LinkedReports, ReleasedDifferences, Report, View


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
    if isinstance(view, LinkedReports) or (isinstance(view, Report) and question.rounds == view.round == 1):
        telling = _telling(question)
        source = f"{source}; {telling}" if telling else source
        return per_cell_claim(question.yes, question.no, cells=cells, queries=view.queries, source=source)
    if isinstance(view, Report):
        if view.round > question.rounds:
            return PrivacyClaim.unknown(f"The mechanism has {question.rounds} round(s) only.")
        yes, no = question.in_round(view.round)
        return per_cell_claim(yes, no, cells=cells, queries=view.queries, source=f"{source}, round {view.round} alone")
    if isinstance(view, ReleasedDifferences):
        return PrivacyClaim.unknown("The mechanism publishes no differences of two rounds' counts.")
    return PrivacyClaim.unknown(f"The claim of {view.name} is not computed yet.")


def _telling(question: Question) -> str:
    """Name the answers that tell with certainty; nothing, if there are none."""
    parts = []
    for answers, who in ((question.told_by_yes, "in the cell"), (question.told_by_no, "not in it")):
        if answers:
            parts.append(f"{question.name(answers[0])} is given only by a device {who}")
    return ", ".join(parts)
