"""A page that asks: two films side by side, or one, answered by a key or a click.

It is served to this machine alone, under a word that only who started it knows. An answer is on the
disk before the page shows the next question.
"""

from __future__ import annotations

import json
import queue
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from robo_rl.labelling.store import Label, LabelStore
from robo_rl.runs.html_page import head

FPS = 4  # frames a second; the last one stays for as long again
MOST_BYTES = 1_000  # of a reply
STYLE = """<style>
#films{display:flex;gap:1rem;flex-wrap:wrap}
#films figure{flex:1;margin:0;min-width:280px;max-width:30rem}
#films img{width:100%;image-rendering:pixelated}figcaption{font-size:1.4rem;text-align:center}
button{font:inherit;padding:.5rem 1rem;margin:.8rem .5rem 0 0;cursor:pointer}kbd{font-weight:700}
</style>"""
SCRIPT = """
const films=document.getElementById("films"),said=document.getElementById("said");
let now=0,turn=0,busy=false;
const names=q=>q.second.length?[q.first,q.second]:[q.first];
function show(){
  turn=0;
  document.getElementById("count").textContent=now<asked.length?`${now+1} of ${asked.length}`:"";
  if(now>=asked.length){
    films.innerHTML="";said.innerHTML="<p>All is answered, and kept.</p>";return}
  films.innerHTML=names(asked[now]).map((_,i)=>"<figure><img alt='film "+(i+1)+"'>"+
    (asked[now].second.length?"<figcaption>"+(i+1)+"</figcaption>":"")+"</figure>").join("");
  for(const name of names(asked[now]).flat())new Image().src="frames/"+name+".png";
  play();
}
function play(){
  if(now>=asked.length)return;
  names(asked[now]).forEach((film,i)=>{
    const at=Math.min(turn%(2*film.length),film.length-1);
    films.querySelectorAll("img")[i].src="frames/"+film[at]+".png"});
  turn++;
}
setInterval(play,1000/fps);
async function answer(word){
  if(busy||now>=asked.length)return;
  busy=true;
  try{
    const body=JSON.stringify({question:asked[now].number,said:word});
    const reply=await fetch("answer",{method:"POST",body});
    if(!reply.ok)throw await reply.text();
    now++;show();
  }catch(error){document.getElementById("error").textContent="not kept: "+error}
  busy=false;
}
for(const[key,word]of Object.entries(keys)){
  const b=document.createElement("button");b.innerHTML="<kbd>"+key+"</kbd>"+(key==word?"":" "+word);
  b.onclick=()=>answer(word);said.append(b)}
document.onkeydown=e=>{
  const word=keys[e.key.toLowerCase()];
  if(word&&!e.repeat&&!e.ctrlKey&&!e.metaKey)answer(word)};
show();
"""


@dataclass
class _PageAnswer:
    """An answer to a question, with events for stored and confirmed."""

    question: int
    said: str
    kept: threading.Event = field(default_factory=threading.Event)
    replied: threading.Event = field(default_factory=threading.Event)


class _Server(ThreadingHTTPServer):
    """One whose terminal is a command's: of a page that is gone it says nothing."""

    def handle_error(self, request: object, client_address: object) -> None:
        pass


class LabelPage:
    """The page while it is served: ``with LabelPage(...) as page``."""

    def __init__(
        self, questions: Sequence[Label], store: LabelStore, text: str, keys: Mapping[str, str]
    ):
        self.asked, self._said, self._closed = list(questions), queue.Queue[_PageAnswer](), False
        self._open = set(range(len(self.asked)))
        images = {name for question in questions for film in question.films for name in film}
        files = {name: store.folder / "frames" / f"{name}.png" for name in images}
        page, word = self, secrets.token_urlsafe(16)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.removeprefix(f"/{word}/")
                picture = name.removeprefix("frames/").removesuffix(".png")
                if self.path == f"/{word}/":
                    left = [(n, page.asked[n]) for n in sorted(page._open)]
                    body = _page(left, text, keys)
                    self._reply(HTTPStatus.OK, body, "text/html; charset=utf-8")
                elif (frame := files.get(picture)) and name == f"frames/{frame.name}":
                    known = frame.is_file()
                    data = frame.read_bytes() if known else b"it is gone"
                    self._reply(HTTPStatus.OK if known else HTTPStatus.GONE, data, "image/png")
                else:
                    self._reply(HTTPStatus.NOT_FOUND, b"there is no such page")

            def do_POST(self) -> None:
                if self.path != f"/{word}/answer":
                    return self._reply(HTTPStatus.NOT_FOUND, b"there is no such page")
                try:
                    length = min(int(self.headers.get("Content-Length", 0)), MOST_BYTES)
                    given = json.loads(self.rfile.read(length))
                    number, said = given["question"], given["said"]
                    if type(number) is not int or number < 0:
                        raise ValueError(f"unknown question {number!r}")
                    if said not in page.asked[number].may_be:
                        raise ValueError(f"{said!r} is not a valid answer")
                except (ValueError, KeyError, TypeError, IndexError) as error:
                    return self._reply(HTTPStatus.BAD_REQUEST, f"no answer: {error}".encode())
                answer = _PageAnswer(number, said)
                page._said.put(answer)
                while number in page._open and not answer.kept.wait(0.1):
                    if page._closed:
                        return self._reply(HTTPStatus.GONE, b"this labelling session has ended")
                if answer.kept.is_set():
                    self._reply(HTTPStatus.OK, b"kept")
                else:
                    self._reply(HTTPStatus.CONFLICT, b"it is answered already: load the page anew")
                answer.replied.set()

            def _reply(self, status: HTTPStatus, body: bytes, kind: str = "text/plain") -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Referrer-Policy", "no-referrer")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Says nothing: the terminal is the command's."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/{word}/"

    def __enter__(self) -> LabelPage:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._closed = True
        self._server.shutdown()
        self._server.server_close()

    def answers(self) -> Iterator[tuple[Label, str]]:
        """Yields (question, answer) as answers arrive, each question once, until all are answered.
        The page shows the next question once the caller asks for it, by when the answer is stored.
        """
        while self._open:
            answer = self._said.get()
            if answer.question not in self._open:
                continue
            yield self.asked[answer.question], answer.said
            answer.kept.set()
            self._open.remove(answer.question)
            answer.replied.wait(1.0)  # before the server is closed


def _page(open_questions: Sequence[tuple[int, Label]], text: str, keys: Mapping[str, str]) -> bytes:
    questions = [{"number": n, "first": q.first, "second": q.second} for n, q in open_questions]
    given = {"asked": questions, "keys": keys, "fps": FPS}
    # Nothing in a script ends it but its own end: sentences are the user's.
    options = "".join(
        f"const {name}={json.dumps(value).replace('<', chr(92) + 'u003c')};"
        for name, value in given.items()
    )
    return (
        f"{head(text)}{STYLE}<p class=lead id=count></p><section><div id=films></div><div id=said>"
        f"</div><p id=error></p></section></main><script>{options}{SCRIPT}</script></html>"
    ).encode()
