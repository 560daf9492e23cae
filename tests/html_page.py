"""The tags and the text of a page."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Every tag with its attributes, and the text outside scripts and styles."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002  the base class names it
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside not in {"script", "style"}:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def values(self) -> set[float]:
        return {float(attributes["value"] or "nan") for tag, attributes in self.tags if tag == "data"}
