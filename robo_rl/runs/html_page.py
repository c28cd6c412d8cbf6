"""Parts of HTML pages: head with style, sections, figures as images."""

from __future__ import annotations

import base64
import html
import io
from typing import Any

STYLE = """
:root{color-scheme:light dark;--ink:#1d2126;--soft:#5d6670;--line:#d9dee3;--card:#fff;
--page:#f5f6f8;--accent:#c2185b}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--soft:#9aa4ae;--line:#353b42;--card:#1f2429;
--page:#15181b;--accent:#f06292}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}
main{max-width:1000px;margin:0 auto;padding:2rem 1rem}
h1{font-size:1.5rem;margin:0 0 .2rem}h2{font-size:1.05rem;margin:0 0 .8rem}
.lead{color:var(--soft);margin:0 0 1.5rem}
.big{font-size:2.6rem;font-weight:700;color:var(--accent);line-height:1.1}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:1.2rem;
margin:0 0 1.2rem;overflow-x:auto}
video,img{max-width:100%;border-radius:6px;display:block}
table{border-collapse:collapse;width:100%}td,th{padding:.3rem .6rem;border-bottom:1px solid
var(--line);text-align:left;font-variant-numeric:tabular-nums;vertical-align:top}
th{color:var(--soft);font-weight:500;width:34%}code{font-size:.9em}
summary{cursor:pointer;color:var(--soft)}pre{font-size:.8rem;white-space:pre-wrap}
"""


def head(title: str) -> str:
    """Returns the head of a page that ends with </main></html>."""
    title = html.escape(title)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width,initial-scale=1'>"
        f"<title>{title}</title><style>{STYLE}</style><main><h1>{title}</h1>"
    )


def section(title: str, body: str) -> str:
    """A box of a page; nothing where there is nothing to say."""
    return f"<section><h2>{title}</h2>{body}</section>" if body else ""


def image(figure: Any, about: str) -> str:
    """A figure as an element of a page."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f"<img alt='{about}' src='data:image/png;base64,{data}'>"
