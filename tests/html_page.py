# SPDX-License-Identifier: Apache-2.0
#
# Pages of trainc-inspect: their tags, none of which loads anything, and the data in them. Standard library only.
import html.parser
import json

VOID = {"meta", "link", "img", "br", "input"}


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.text = open(path, encoding="utf-8").read()
        self.open, self.tags, self.texts = [], [], []
        self.feed(self.text)
        self.close()
        assert not self.open, self.open
        self.data = json.loads("".join(self.texts))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            assert name not in ("src", "srcset", "action", "data") and not name.startswith("on"), (tag, name, value)
            assert name != "href" or value.startswith("#"), (tag, name, value)
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (self.getpos(), tag)

    def handle_data(self, text):
        if self.open and self.open[-1] == "script" and self.tags[-1][1].get("id") == "data":
            self.texts.append(text)

    def frame(self):
        """The page without its data."""
        before, rest = self.text.split('id="data">')
        return before + rest.split("</script>", 1)[1]
