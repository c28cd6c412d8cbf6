"""Classes of words that say the same thing, and the forms of their verbs."""

from __future__ import annotations

from functools import cache

# name -> words, one pattern's choices. Verbs are stems; {PUSH_ED} has the past participles.
CLASSES = {
    # With a thing as what is moved. What throws or breaks is in none of these.
    "CARRY": (
        "move|bring|carry|take|transport|transfer|deliver|get|convey|shift|relocate|haul|ferry|"
        "lug|send|guide|steer|lead|pass|return|fetch|walk|fly|pick up and move|pick up and carry|"
        "lift|lift and move|grasp and move|grab and move|lift and carry|pick and carry|"
        "pick and move"
    ),
    "SHOVE": (
        "push|slide|shove|nudge|drag|pull|scoot|roll|scooch|shift|move|bring|get|take|guide|"
        "steer|haul|tow|tug|bump|scrape|edge|sweep|budge|usher|lead|put|place|set|"
        "position|send|relocate|reposition|transport|carry|transfer|convey|draw|park|deliver|"
        "press|have|leave|fetch|run|direct|stick|pop|arrange"
    ),
    "PUT": (
        "put|place|set|lay|rest|position|deposit|pop|stick|plonk|plop|park|leave|settle|sit|stand|"
        "land|drop|drop off|set down|put down|lay down|balance|perch|plant|have|keep|arrange|"
        "situate|locate|unload|release|let go of|let down|lower|pick and place|pick up and place|"
        "pick up and put|pick and put|grasp and place|grab and place|grab and put|take and place|"
        "take and put|lift and place|lift and put|grip and place|pick up and set|grasp and put"
    ),
    "STACK": "stack|pile|pile up|stack up",
    "STOW": (
        "store|stow|stash|tuck|keep|pack|slip|insert|load|file|shove|push|slide|fit|hide|leave|"
        "house|nestle|dump|slot|return|feed|pack up"
    ),
    "INSERT": (
        "insert|slot|fit|plug|seat|push|slide|stick|slip|guide|lower|thread|poke|press|drop|dock|"
        "plunge|drive|ease|sink|feed|mount|install|squeeze|place|put|pop|set|get|bring|move|"
        "direct|steer|lodge|bury|plant|house|sheathe|jam|shove|stuff|inject|introduce|tuck|"
        "deliver|send|work|wiggle|position|take|carry|leave|nest|embed|engage|settle|home"
    ),
    "LIFT": (
        "lift|raise|hoist|elevate|heave|levitate|uplift|lift up|raise up|pick up|hold up|bring up|"
        "take up|scoop up|hoist up|heave up|pull up|haul up|boost|get up|lift off|upraise|pluck up|"
        "pick up and hold|pick up and lift|lift and hold|lift up and hold|grasp and lift|"
        "grab and lift|grip and lift|grasp and raise|grab and raise|grip and raise|raise and hold|"
        "pick and lift|grasp and hold up|grab and hold up|hold and lift|pick and hold up|"
        "take and lift"
    ),
    "PICK": "pick|hold|scoop|bring|take|pull|haul|heave|pluck|keep|get|hoist|lift|raise|carry|send",
    "GRASP": (  # what leads to a goal and is none
        "grasp|grab|grip|clutch|take|take hold of|get hold of|catch|seize|clasp|hold|fetch|get|"
        "pick|pick up|lift|lift up|pinch|snatch|find|go to|move to|reach for|reach|approach|"
        "go over to|go get|grab hold of|catch hold of|collect|raise|scoop up|head to|reach to"
    ),
    "OPEN": "open|open up|unclose|slide open|pull open|draw open|tug open|slide out|pull out|"
    "draw out|roll out|extend|yank open",
    "DRAW": "pull|slide|draw|drag|tug|haul|yank|move|roll|bring|coax|ease|get|push|have|jerk|heave",
    "CLOSE": (
        "close|shut|close up|push shut|push closed|slide shut|slide closed|push in|slide in|"
        "press shut|seal|shove in|retract|shove shut"
    ),
    "SHUTTING": "push|slide|shove|press|move|roll|bring|nudge|get|ease|put|send|seat|return|"
    "drive|have|force|tuck|pull|bump|shift|coax|tap",
    "PRESS": (
        "press|push|hit|click|depress|punch|bop|bonk|smack|slap|whack|thump|mash|jab|activate|"
        "trigger|operate|engage|actuate|press down|push down|push in|press in|hold down|"
        "press down on|push down on|press on|push on|push in on|boop|bash|bang|strike|prod|"
        "poke|tap|jab at|give it press|press upon|thumb|slam|buzz|ring|squish|squash|"
        "trip|nudge|work|hammer|clap|pound|knock|compress|press and hold|push and hold|"
        "press down and hold|push down and hold"
    ),
    "DIP": "tap|poke|push|press|punch|move|bring|hold|keep|nudge|jab|prod|click|send|drive|get|"
    "hit|shove|force|bop",
    "TOUCH": (
        "touch|tap|poke|contact|reach|meet|prod|pat|boop|feel|tap on|poke at|kiss|"
        "brush against|bump against|bump into|press against|rest against|lean against|rest on|"
        "reach for|reach to|reach out to|reach out and touch|reach over to|"
        "touch on|dab|bop|come up against|connect with|"
        "touch upon|go get|go touch|get to|go for|brush up against|make contact with|"
        "approach and touch|reach and touch|go to and touch|move to and touch"
    ),
    "LEADHAND": (
        "move|bring|put|place|position|get|take|guide|steer|set|keep|hold|send|direct|lead|rest|"
        "navigate|maneuver|manoeuvre|drive|park|have|lay|station|shift|slide|leave|swing|float|"
        "hover|stretch|extend|press|raise|lower|lift|retract|pull|withdraw|stand|fly|settle|"
        "relocate|"
        "situate|line|carry|transfer|locate|stop|draw|back|remove"
    ),
    "GO": (
        "go|move|come|get|travel|head|drive|navigate|proceed|shift|return|slide|glide|fly|drift|"
        "hop over|run|walk|step|advance|swing|float|slip|pop|stretch|reach|scoot|zoom|journey|roll"
    ),
    "LEAVE": "go|move|get|stay|keep|back|pull|step|stand|run|remain|be|draw|come|shift|retreat|"
    "withdraw|retract|back off|back up|back away|fly|slide|steer|drift|shy|flee|scoot|hang|"
    "travel|swing|walk|head|turn|float|wait",
    "HOVER": "hover|float|hang|stay|wait|be|remain|sit|stop|stand|pause|hold|rest|park|linger|"
    "levitate|keep|settle|rise|soar|dangle|reside|lie",
    # Where. "over" and "across" alone only say that something moves.
    "ALONG": "over|across|along|up|in|all the way|straight|right|directly|on over|all way|over "
    "there",
    "DOWN": "down|back down|off",
    "ON": "on|onto|on to|upon|on top of|onto top of|atop|on top|up on|up onto|down on|down onto|"
    "right on|over on|over onto|over on top of|up on top of|right on top of|to top of|"
    "squarely on|directly on|directly onto|directly on top of|back on|back onto",
    "AT": "at|to|over to|in|into|within|inside|towards|up to|across to|over at|right at|right to|"
    "all way to|over into|down at|directly at|directly to|straight to|by",
    "IN": "in|into|in to|inside|inside of|within|down into|right into|back into|back in|right in|"
    "down in|over into|all way into|all way in|straight into|over in|deep into|down inside|"
    "in side|right inside|fully into|fully in|completely into|fully inside|directly into",
    "NEAR": (
        "next to|beside|alongside|adjacent to|near|near to|close to|close by|nearby|besides|"
        "right next to|right beside|right near|just next to|just beside|directly next to|"
        "right alongside|right up next to|up next to|up against|against|right against|"
        "right up against|at side of|by side of|to side of|in contact with|side by side with|"
        "neighbouring|neighboring|touching|over by|over beside|over next to|over near|"
        "over against|together with|at flank of|hard by|up beside|up close to|up alongside|"
        "close up to|tight against|flush against|flush with|abutting|in vicinity of|"
        "in proximity to|in proximity of|directly beside|immediately next to|immediately beside|"
        "very close to|really close to|right close to|over alongside|up to|back to back with|"
        "shoulder to shoulder with|cheek to cheek with|into contact with|down next to|nearer|"
        "down beside|across next to|across beside|beside of|closely beside|beside to|"
        "neighbour of|neighbor of|neighbour to|neighbor to|along side of|along side|close beside"
    ),
    "UPTO": (
        "to|over to|up to|across to|onto|on to|right to|right up to|all way to|all way over to|"
        "along to|straight to|toward and touching|to meet|to touch|so as to touch|over to meet|"
        "all way up to|directly to|over and up to"
    ),
    "ABOVE": (
        "above|over|directly above|right above|directly over|right over|just above|just over|"
        "straight above|straight over|on top of|over top of|over and above|atop|up above|up over|"
        "vertically above|somewhere above|immediately above|higher than|"
        "on top|overhead of|in air above|in air over|to above|to over|in place above|at place "
        "above|"
        "in position above|in position over|in space above|in spot above|to position above|"
        "to point above|to spot above|to place above|to place over|at point above|squarely above|"
        "squarely over|to top of|at top of|over head of|over top|high above|high over|"
        "well above|to space above|into air above|into space above"
    ),
    "SIDE": (
        "[to|on|at|in|over to|over on|over at|towards|toward|off to|into|round to|around to|"
        "just to|just|directly|directly to|immediately to|right to|straight to|onto|by|over|"
        "immediately|standing to|positioned to|somewhere to|up to]"
    ),
    "OFSIDE": "(hand side|side|hand|hand part|handside|flank|hand flank|hand side part|part|"
    "sidehand)",
    "AWAY": (
        "far from|far away from|away from|well away from|clear of|well clear of|at distance from|"
        "far off from|distant from|far apart from|long way from|long way away from|long way off "
        "from|"
        "long way off|a distance away from|at safe distance from|at good distance from|"
        "safe distance from|good distance from|safe distance away from|good distance away from|"
        "at safe distance away from|at good distance away from|at great distance from|"
        "at large distance from|at long distance from|at big distance from|large distance from|"
        "off from|safely away from|way off from|way away from|right away from|"
        "good way from|good way away from|good way off from|"
        "remote from|some distance from|"
        "some distance away from|at some distance from|very far from|very far away from|"
        "really far from|really far away from|quite far from|quite far away from|"
        "distance away from|plenty of distance from|"
        "good long way from|great distance from|long distance from|big distance from|"
        "at respectful distance from|at decent distance from|at fair distance from|"
        "at healthy distance from|at comfortable distance from|fair distance from|apart from|"
        "as far as possible from|as far away as possible from|as far as you can from|"
        "as far away as you can from|back from|well back from|well off|well clear from|clear from|"
        "way over away from|far off|far out from|well far from|good distance off from|"
        "far far away from|way far from|far and away from|to far from|to place far from|"
        "in place far from|somewhere far from|somewhere far away from|at far distance from|"
        "far distance from|at wide distance from|long away from|at arms length from"
    ),
    "WIDE": "safe|good|long|great|large|big|fair|wide|generous|healthy|decent|clear|respectful|"
    "huge|comfortable|sensible|proper|nice",
    "UP": (
        "up|in air|into air|up in air|up into air|off table|up off table|off ground|up off ground|"
        "from table|up from table|off surface|off floor|off of table|off of ground|from ground|"
        "up from ground|off tabletop|off desk|aloft|up high|high up|skyward|skywards|upward|"
        "upwards|to sky|into sky|up to sky|above table|up above table|clear of table|"
        "up off surface|airborne|off of surface|off of floor|up off floor|up off desk|above ground|"
        "above surface|from surface|from floor|from desk|up from surface|up from floor|"
        "up from desk|clear off table|clean off table|right up|up up|in sky|high|high in air|"
        "high into air|up high in air|off bench|off worktop|up from bench|up off bench|"
        "clear of ground|over table|up over table|off deck|up here|to air|off table top|"
        "up off table top|up off of table|free of table|away from table|right off table|"
        "up and off table|in mid air|in midair|mid air|midair|overhead|up there|"
        "up toward ceiling|to ceiling|towards ceiling|towards sky|up to ceiling|all way up"
    ),
    "HOLDING": "holding|gripping|grasping|clutching|carrying|lifting|raising|hoisting",
    "MADE": (
        "be|become|get|end up|end up being|finish|finish up|wind up|stay|remain|end|come to be|"
        "turn out|come to rest|sit|stand|lie|rest|settle|hang|have to be|be found|be seen|"
        "be located|be positioned|be situated|be parked|be left|keep|finish off|be standing|"
        "be sitting|be lying|be resting|be left standing|be left lying|be left sitting|"
        "be left resting|be waiting|be placed|go to be|be stationed|be kept|live|belong|"
        "be made to be|be brought to be|end up sitting|end up standing|end up lying|"
        "end up resting|finish up being|come to lie|come to stand|be placed to be|find itself|"
        "find yourself|be there|reside|be hanging|end its way|be at rest|land|be set|come to sit|"
        "be put|hold|be staying|be held|be observed|perch|be perched|be ending up|finish being|"
        "get to be|be nicely|show up|appear|arrive|wait|nestle|be nestled|park|be nestling|sit "
        "nicely"
    ),
    "GOES": "go|come|move|travel|slide|get|head|fit|belong|drop|fall|slip|be going|arrive|land|"
    "settle|roll|end up going|pop|want to go|need to go|return|be coming|be moving",
    # Verbs of bodies
    "STRIDE": (
        "walk|run|hop|jump|leap|gallop|trot|march|stride|crawl|sprint|jog|race|bound|skip|move|go|"
        "travel|head|advance|proceed|swim|step|stroll|amble|scuttle|scurry|dash|dart|wander|hike|"
        "trudge|plod|pace|stomp|strut|saunter|wriggle|slither|paddle|glide|bounce|creep|canter|"
        "charge|rush|speed|hurry|zoom|tramp|waddle|toddle|shuffle|scamper|trek|press|push|forge|"
        "journey|progress|locomote|drive|propel yourself|propel itself|carry yourself|undulate|"
        "ambulate|bunny hop|spring|pogo|hop along|swim along|walk along|tread|wade|surge|"
        "lope|bolt|motor|make progress|make headway|hurtle|float|drift|"
        "cruise|sail|snake|slide|squirm|carry on|tiptoe|ride|continue"
    ),
    "FORWARD": (
        "forward|forwards|ahead|onward|onwards|straight ahead|straight forward|straight on|"
        "in forward direction|in front direction|to front|towards front|in direction of front|"
        "frontward|frontwards|straight forwards|right ahead|on ahead|on forward|on forwards|"
        "forth|up ahead|in forwards direction|toward front|front|to front direction|"
        "ahead of you|ahead of itself|in front of you|in direction forward|in direction ahead|"
        "in direction you are facing|way forward|directly ahead|directly forward|off ahead|"
        "off forward|off forwards|in straight line forward|forward in straight line|"
        "forwards in straight line|ahead in straight line|in straight line ahead|"
        "straight on ahead|out ahead|out front|out in front|down track|along track|down road|"
        "in line forward|straight onward|forward and onward|onward and forward|"
        "onwards and forwards|away to front|ahead forward|in direction in front of you|"
        "in front|from here to front|in positive direction|toward direction of front|straight"
    ),
    "CRAWLING": "advance|proceed|press on|push on|forge ahead|make headway|make progress|"
    "march on|press ahead|push ahead|carry on ahead|walk on|run on|swim on|trot on|gallop on|"
    "hop on|crawl on|move on|stride on|jog on|keep going|progress",
}

_IRREGULAR = {  # stem -> past forms that are not regular
    "put": "put", "set": "set", "lay": "laid", "stick": "stuck", "leave": "left", "sit": "sat",
    "stand": "stood", "bring": "brought", "take": "took|taken", "get": "got|gotten",
    "send": "sent", "lead": "led", "drive": "drove|driven", "draw": "drew|drawn", "fit": "fit",
    "slide": "slid", "roll": "rolled", "run": "ran|run", "go": "went|gone", "come": "came|come",
    "hold": "held", "keep": "kept", "hit": "hit", "strike": "struck", "shut": "shut",
    "feed": "fed", "hide": "hid|hidden", "sink": "sank|sunk", "let": "let", "have": "had",
    "make": "made", "meet": "met", "feel": "felt", "swing": "swung", "rise": "rose|risen",
    "fly": "flew|flown", "be": "was|were|been", "hang": "hung", "swim": "swam|swum",
    "leap": "leapt|leaped", "spring": "sprang|sprung", "find": "found", "catch": "caught",
    "tread": "trod|trodden", "ride": "rode|ridden", "creep": "crept", "speed": "sped",
    "lie": "lay|lain", "kneel": "knelt|kneeled", "do": "did|done", "give": "gave|given",
    "throw": "threw|thrown", "fall": "fell|fallen", "stay": "stayed", "become": "became|become",
    "say": "said", "sweep": "swept", "ring": "rang|rung", "end": "ended", "wind": "wound",
    "show": "showed|shown", "steer": "steered", "turn": "turned", "bury": "buried",
    "carry": "carried", "ferry": "ferried", "hurry": "hurried", "touch": "touched",
    "convey": "conveyed", "journey": "journeyed", "open": "opened", "shake": "shook|shaken",
    "wake": "woke|woken", "deliver": "delivered", "travel": "travelled|traveled",
    "flee": "fled", "thread": "threaded", "sheathe": "sheathed", "propel": "propelled",
    "spread": "spread", "stretch": "stretched", "wave": "waved",
}  # fmt: skip
_DOUBLES = frozenset(
    "put get set tap sit drag slip step run hop skip jog trot drop flip swim stop pop pat plug fit "
    "plop tug hug shut hit bop pin jam prod jab dab let tip trip nod wag scrub clap strut "
    "slap pad transfer propel dip scan trek bob plod slot shun cut slam".split()
)


@cache
def forms_of(verb: str) -> dict[str, tuple[str, ...]]:
    """{"s" | "ing" | "ed": the forms}, of a verb or of a verb and its particle."""
    head, _, particle = verb.partition(" ")
    tail = f" {particle}" if particle else ""
    double = head + head[-1] if head in _DOUBLES else head
    bare = head[:-1] if head.endswith("e") and not head.endswith(("ee", "oe")) else double
    bare = "be" if head == "be" else bare
    ing = {"lie": "lying"}.get(head, bare + "ing")
    if head.endswith("y") and head[-2] not in "aeo":
        s, ed = head[:-1] + "ies", head[:-1] + "ied"
    else:
        s = head + ("es" if head.endswith(("s", "sh", "ch", "x", "o", "z")) else "s")
        ed = bare + "ed"
    s = {"be": "is", "have": "has"}.get(head, s)
    past = _IRREGULAR.get(head, "").split("|") if head in _IRREGULAR else []
    past = list(dict.fromkeys([*past, *([] if past else [ed])]))
    if head == "fit":
        past.append("fitted")
    if head == "stack":
        past.append("stacked")
    return {
        "s": (s + tail,),
        "ing": (ing + tail,),
        "ed": tuple(dict.fromkeys(p + tail for p in past)),
    }
