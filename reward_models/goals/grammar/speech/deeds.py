"""What can be asked of things: orders and states, each meaning one predicate.

An order begins with a stem ("bring X onto Y"); a state begins with "X be" or "HAND be". The first
thing of the atom is X, and HAND is its first where the second is none. A card decides with its
affordances which of the predicates a thing can have at all.
"""

from __future__ import annotations

_BY = "[{BY}]"
_TAP = (
    "(touch|tap|poke|prod|pat|boop|dab|little touch|"
    "little tap|little poke|kiss|fist bump|high five)"
)
_PUSHED = (
    "(press|push|poke|click|hit|tap|punch|whack|jab|prod|bop|little press|"
    "little push|smack|thump|bash|squeeze|"
    "nudge|shove|slap|boop|bonk|little tap|little poke|go)"
)
_CUBES = "[two|both|both of] (cubes|blocks|boxes|bricks|them)"
ORDERS: dict[str, tuple[str, ...]] = {
    "touch": (
        "{TOUCH} X",
        "(tap tap|poke poke|touch touch|boop boop|pat pat|tap tap tap) X",
        "(make|get|establish|have|come into|come in|get into|get in|be in|go into|keep|maintain|"
        "stay in|end up in|achieve|gain|move into|form) "
        "[physical|direct|actual|some] (contact|touch) (with|to|on|against) X",
        f"give X {_TAP}",
        "{LEADHAND} HAND [{ALONG}] [{DOWN}] (on|onto|against|into contact with|in contact with|"
        "to touch|so as to touch|touching|to|up to|up against|right against|right to|"
        "right up to|right up against|at|over to|right on|down on|to surface of|on top of and "
        "touching|over to touch|out to touch|to meet|out to|out and touch|in touch with|"
        "into touch with|out to meet|to make contact with|on to|over onto|to where it touches|"
        "until it touches|to point of touching|until contact with|so it touches|so that it "
        "touches|so it is touching|forward to touch|forward to|over and touch|right over to) X",
        "{LEADHAND} HAND [{ALONG}] until it [is] (touching|touches|contacts|meets|reaches) X",
        "(reach|stretch|lean|go|move|come) (out|over|across|forward|down|up|out over) "
        "(and|to|for|till you|until you|so you|so that you) (touch|tap|poke|contact|pat|feel|X|"
        "touch X|tap X|poke X|contact X|pat X|feel X|meet X|reach X)",
        "(reach|stretch|go|come|move) (for|out for|out to|over to|over for|across to|across for|"
        "toward and touch|to|right up to|up to|until you touch|till you touch|right to|up against|"
        "until touching) X",
        "(let|have|make) HAND (touch|contact|meet|reach|tap|poke|brush|feel|kiss|touching|"
        "in contact with|make contact with|against|rest against|rest on|come into contact with) X",
        "(lay|put|place|rest|set|get|plant|stick) (hand|finger|one finger|fingers|HAND|palm|"
        "fingertip|touch|paw|paws|hands) [{DOWN}] (on|upon|onto|on top of|against|to) X",
        "(say hello to|say hi to|shake hands with|high five|greet|tag|come say hello to) X "
        "(with|by) (touch|tap|touching it|touching|HAND)",
        "(feel|get feel of) X with HAND",
    ),
    "above": (
        "{HOVER} [directly|right|just|up|high|straight] {ABOVE} X",
        "{HOVER} in (air|space) (above|over|directly above|right above|just above) X",
        "{GO} [up] [and] [{HOVER}] {ABOVE} X",
        "(go|move|come|fly|get|head|travel) [up] to (spot|place|point|position|space|somewhere) "
        "{ABOVE} X",
        "{LEADHAND} HAND [up] [{ALONG}] [so it is|so that it is|until it is|to be|to hover|"
        "hovering|so it hovers|so that it hovers|until it hovers|to sit|floating|positioned|to "
        "float|sitting|hanging|to hang|hover|held|poised|resting] {ABOVE} X",
        "(let|have|make|get) HAND {HOVER} {ABOVE} X",
        "(take|assume|occupy|hold|keep|find|have|get|reach) (place|position|spot|point|"
        "hover|hovering position) {ABOVE} X",
        "{LEADHAND} HAND to [be] (directly|right|just) {ABOVE} X",
        "{HOVER} (HAND|HAND up|HAND in air) {ABOVE} X",
    ),
    "left_of": (
        "{LEADHAND} HAND [{ALONG}] [so it is|so that it is|until it is|to be|to stand|standing|"
        "to stop|to stay|stay] {LEFT}",
        "{GO} [{ALONG}] {LEFT}",
        "{HOVER} [{ALONG}] {LEFT}",
        "(let|have|make|get) HAND ({HOVER}|{GO}) {LEFT}",
        "(take|assume|occupy|hold|keep|find|have|get|take up|reach) (place|position|spot|point|"
        "your place|your position) {LEFT}",
    ),
    "right_of": (),  # the same with RIGHT
    "far": (
        "{LEAVE} [very|really|quite|so|right|way|well] [out|over] {AWAY} X",
        "(keep|stay|remain|stand|move|get|back|steer|step|pull|be|go) (away|off|back|clear|well "
        "clear|well away|right away|far away|far|well back|right back|far back) (from|of) X",
        "{LEADHAND} HAND [{ALONG}] [to be|so it is|so that it is|until it is|very|really] "
        "{LEADHAND} HAND [{ALONG}] [to|so it is at|so that it is at|at|until it is at|up to] "
        "{WIDE} (distance|way|gap|space) [away] (from|off) X",
        "(keep|maintain|leave|hold|put|get|have|make|create|allow) [your|{WIDE}|plenty of|lots of|"
        "lot of|some] (distance|space|gap|room|clearance) (from|to|away from|between HAND and|"
        "between yourself and) X",
        "(keep|maintain|leave|hold|put|get|have|make|create|allow) {WIDE} "
        "(distance|space|gap|room|clearance|way) (from|to|away from|between HAND and|off) X",
        "(give|leave|allow|grant) X (plenty of space|lots of space|some space|space|room|"
        "plenty of room|wide berth|lots of room|some room|its space|its distance|big gap|"
        "a lot of room|lot of space|lot of room|good wide berth|your distance|breathing room)",
        "(distance|remove|separate|withdraw|retract|retreat|back) (HAND|yourself|itself) "
        "[far|well|away|right|back|off|far away|well away] from X",
        "(let|have|make|get) HAND {LEAVE} [very|really] {AWAY} X",
        "steer clear of X",
        "(go|move|get|be|stay) (distance|far|far far|well) away from X",
        "back (off|away|up|out) [far|well|right] [away] from X",
    ),
    "next_to": (
        "{SHOVE} X [{ALONG}] [to be|so it is|until it is|to stand|to sit|to rest|to lie|standing|"
        "sitting|resting|so that it is|to place|to spot|to come|to go|to stay|to end up|to get|"
        "placed|positioned|lying|to somewhere|to position|to side|to go and sit|to go and stand|"
        "to go and be|to where it is] {NEAR} Y",
        "{SHOVE} X [{ALONG}] {UPTO} Y",
        "{SHOVE} X [{ALONG}] to Y 's side",
        "{SHOVE} X [{ALONG}] [to|on|by|at|over to|over by] side of Y",
        "(let|have|make|get) X (go|come|be|stand|sit|rest|stay|move|lie|touch|meet|join|end up|"
        "slide|travel|get|visit|become|nestle|snuggle up|cuddle up|snuggle|cuddle|run|walk|hop|"
        "roll|"
        "head|scoot|go and sit|go and stand|go sit|go stand|go and be|park|settle) [{ALONG}] ("
        "{NEAR}|{UPTO}) Y",
        "(make|let|have|get) X [go|go and|come|come and] (touch|touching|meet|join|visit|contact|"
        "kiss|greet|reach|cuddle|hug|see|say hello to|say hi to|keep company with|find|touches) Y",
        "(make|let|have) X (neighbour|neighbor|buddy|companion) of Y",
        "(join|unite|introduce|pair|partner) X (to|with|up with) Y",
        "{SHOVE} X [{ALONG}] (in|into) (contact|touch) with Y",
        "{SHOVE} X [{ALONG}] (to|and) (touch|meet|join|visit|contact|kiss|greet|keep company "
        "with|say hello to|say hi to|hug|cuddle|see) Y",
        "{SHOVE} X [{ALONG}] so [that] it (touches|meets|joins|contacts|kisses|reaches) Y",
        "{SHOVE} X [{ALONG}] so [that] it (sits|stands|rests|lies|is sitting|is standing|"
        "is resting|comes|lands|stops|goes|ends up|is placed|finishes) {NEAR} Y",
    ),
    "lifted": (
        f"{{LIFT}} X [{{UP}}] {_BY}",
        f"{{PICK}} X {{UP}} {_BY}",
        "pick X",
        "(make|let|get|have|help|see|send) X (rise|fly|float|go up|levitate|hover|go|rise up|come "
        "up|be up|soar|airborne|up|off table|be in air|be off table|leave table|lifted|lifted up|"
        "lift off|raised|raised up|picked up|hoisted|elevated|go up in air|go into air|"
        "leave ground|take off|ascend) [{UP}]",
        "give X (lift|boost|raise|lift up|hoist|little lift|leg up|ride up|good lift|"
        "lift off table|lift into air)",
        "up with X",
        "up [up] [up] X [up] [up]",
        "up [up] [up] [you go|goes|comes|it goes] X",
        "{GRASP} X and ({LIFT}|lift it|lift it up|raise it|raise it up|pick it up|hold it up|"
        "hoist it|lift it {UP}|hold it {UP}|raise it {UP}|bring it {UP}|bring it up|take it {UP}|"
        "elevate it|heave it up|hoist it up|keep it {UP}|pull it {UP}|carry it {UP}) ",
        "(do|perform|make|execute) (lift|lifting|lift off|pick up|pickup) (of|on|with) X",
        "(hold|keep) X (lifted|raised|elevated|aloft|hoisted|lifted up|raised up|suspended|"
        "hovering|suspended in air|floating|dangling)",
    ),
    "on": (
        f"{{PUT}} X [{{ALONG}}] [{{DOWN}}] [safely] {{ON}} Y {_BY}",
        "{CARRY} X [{ALONG}] [{DOWN}] ({ON} Y|({ON}|{ATMARK}) M)",
        "{PUT} X [{ALONG}] [{DOWN}] {ATMARK} M",
        "{STACK} X [{ALONG}] [up] {ON} Y",
        "(push|slide|drag|shove|nudge|pull|scoot|roll|sweep|tow|herd|ease|edge|bump|tug) X "
        "[{ALONG}] ({ON} Y|({ON}|{ATMARK}) M)",
        "({PUT}|{CARRY}) X [{DOWN}] (where|to where|over where|right where|there where|"
        "on where|exactly where) Y (is|is at|lies|sits|is marked|stands|is located)",
        "(let|have|make|get) X (rest|sit|be|stand|lie|land|stay|go|end up|settle|come to rest|"
        "end|finish|perch|balance|come|move|arrive) [{ALONG}] [{DOWN}] ({ON} Y|({ON}|{ATMARK}) M)",
        "(cover|top|crown|cap|occupy|fill) Y (with|using) X",
        "(put|place|set|add|pop|lay|stick|balance|stack) X [up] (on top|on it) of Y",
        "{TOWER}",
        "{GRASP} X and ({PUT} it [{DOWN}]|{CARRY} it [{ALONG}]) ({ON} Y|({ON}|{ATMARK}) M)",
        "{GRASP} X and {STACK} it {ON} Y",
        "(use|take) X to (cover|top|crown|cap|occupy) Y",
        "(give|hand) Y X",
        f"(stack|pile|pile up|stack up) {_CUBES} [,|with|so that|so] X [is|being|be|goes|stacked|"
        "placed] {ON} Y",
    ),
    "uppermost": (  # X on the only other thing that it can be on
        f"(stack|pile|pile up|stack up) {_CUBES} [,] [with|so that|so] X [one] [is|being|be|goes|"
        "placed] {TOPMOST}",
        "{BUILD} {KIT} [of [two|both] (cubes|blocks|boxes)] [,] [with|so that|so] X "
        "[is|being|be|goes] {TOPMOST}",
    ),
    "under": (  # as "on", Y on X: of two things that can be stacked
        "({PUT}|{CARRY}|slide) X [{ALONG}] [{DOWN}] (under|underneath|beneath|below) Y",
        "{TOWEROVER}",
        "(put|place|set|have|keep|use|leave) X (at bottom|on bottom|below|underneath|as base|"
        "down below|as bottom|first|for base|at base) [and|with|,] [put|place|set|have] Y "
        "(on top|at top|above|on it|on top of it|over it|upon it|at very top|uppermost)",
    ),
    "inside": (
        f"({{PUT}}|{{CARRY}}|{{STOW}}) X [{{ALONG}}] [{{DOWN}}] [away|safely|back] {{IN}} Y {_BY}",
        "({PUT}|{CARRY}|{STOW}) X [away|back] (in|inside|inside it|in it|into it)",
        "(put|place|tuck|store|stow|stash|pack|file|hide|clear|set|get) X away",
        "(put|tuck|store|stow|stash|pack|file) away X [{IN} Y]",
        "(let|have|make|get) X (rest|sit|be|lie|land|stay|go|end up|live|come|enter|fit|settle|"
        "slide|slip|drop|move|find its place|find its home) [{ALONG}] [{DOWN}] ({IN} Y|Y)",
        "(have|make|let) Y (hold|contain|store|receive|house|keep|swallow|take|hide) X",
        "({PUT}|{CARRY}|{STOW}) X [away|safely] in (there|it)",
        "(let|make) X enter Y",
        "{GRASP} X and ({PUT}|{CARRY}|{STOW}|drop) it [{ALONG}] [{DOWN}] [away] {IN} Y",
        "(give|hand|feed) Y X",
        "(use|take) X to (fill|occupy) Y",
    ),
    "inserted": (
        f"{{INSERT}} X [{{ALONG}}] [{{DOWN}}] [snugly|safely|fully|completely|home|back] "
        f"{{IN}} Y {_BY}",
        "(insert|plug in|slot in|dock|plug|install|slot|seat|mount|put in|push in|slide in|"
        "pop in|fit in|stick in|slip in|sheathe|lodge|embed|socket|set in place|home|jam in|"
        "stuff in) X [{HOME}]",
        "{INSERT} X {HOME}",
        "{INSERT} X [down] (through|home in|home into|home inside|all way down) Y",
        "(fill|plug|close|stop up|occupy|block|fill up|cover|seal|cork|stopper|close up|fill in) "
        "Y (with|using|by) X",
        "(let|have|make|get) X (go|fit|slide|enter|be|sit|drop|slip|end up|rest|stay|come|"
        "find its place|stand|plug|sink|settle|land|move|seated|inserted|penetrate) "
        "[{DOWN}] ({IN} Y|Y)",
        "(make|let|have) Y (hold|contain|receive|swallow|take|accept|get|house) X",
        "(join|mate|match|unite|marry|introduce|connect|couple|fit together|pair|align and "
        "insert) X (with|to|and|into) Y",
        "(give|hand|feed|offer) Y X",
        "{GRASP} X and ({INSERT} it [{ALONG}] [{DOWN}] {IN} Y|insert it|plug it in|"
        "slot it in|put it in)",
        "(make|get) X [and|with] Y (fit|fit together|mate|meet|joined|together)",
        "make X go {HOME}",
        "(do|perform|complete|execute|make) (insertion|docking) of X [{IN} Y]",
        "(do|perform|complete|execute) X insertion",
    ),
    "open": (
        f"{{OPEN}} X {_BY}",
        f"{{DRAW}} X [{{ALONG}}] {{OPENED}} {_BY}",
        "(make|get|leave|keep|have|hold|see) X {OPENED}",
        "(make|let|have|get) X (slide|come|go|pull|roll|move|be|spring|stand|glide|swing) {OPENED}",
        "(pull|slide|draw|tug|yank|drag) {OPENED} X",
        "(do|perform|execute) (opening|opening up) of X",
        "(give|hand) X (pull|tug|yank) {OPENED}",
        "pull on X {UNTILOPEN}",
        "(pull|tug|use|grab|grip|hold|take|draw|slide|grasp) [on|at] HANDLE [back|out|"
        "towards HAND] (to|and) ({OPEN}|pull|slide|draw) X [{OPENED}]",
    ),
    "closed": (
        f"{{CLOSE}} X [up|again] {_BY}",
        f"{{SHUTTING}} X [{{ALONG}}] {{SHUT}} {_BY}",
        "(make|get|leave|keep|have|see) X {SHUT}",
        "(make|let|have|get) X (slide|go|come|roll|move|be|glide|swing) {SHUT}",
        "(push|slide|shove|press) {SHUT} X",
        "(give) X (push|shove|nudge|bump) {SHUT}",
        "(tuck|put) X (away|back)",
        "(do|perform|execute) (closing|closure|shutting) of X",
        "(push|press|use|shove|grab|grip|hold) [on|at|against] HANDLE [in|back|forward] (to|and) "
        "({CLOSE}|push|slide) X [{SHUT}]",
    ),
    "pressed": (
        f"{{PRESS}} X [down|in|inwards|inward|downwards|downward|home|all way down|all way in|"
        f"right in|right down|into its base|on top|till it clicks|until it clicks|"
        f"to activate it|into place|on its top|inside] {_BY}",
        "{DIP} X (down|in|inwards|inward|downwards|pressed|pressed in|pressed down|pushed in|"
        "pushed down|all way down|all way in|until it clicks|till it clicks|depressed|home|"
        "until it goes in|until it goes down|till it goes down|till it goes in|until it clicks in)",
        f"give X {_PUSHED} [down|in|with HAND]",
        f"(do|make|perform|execute|carry out|apply) {_PUSHED} (of|on|to) X",
        "(apply|exert|put) (pressure|force|weight|some pressure|some weight|some force) "
        "(to|on|onto|upon) X",
        "(make|let|have|get) X (go down|go in|be pressed|click|pressed|pushed|pressed down|"
        "pressed in|pushed in|pushed down|down|depressed|activated|be pushed|to click|sink|"
        "sink in|go inwards|triggered|clicked|move down|move in|sink down)",
        "(make|get|have) HAND {PRESS} X",
        "(press|push|hit) press X",
        "(put|press|push|use) [your|one|HAND] (finger|fingers|hand|tip|thumb|HAND) "
        "(on|onto|against|down on) X and (press|push|press down|push down|press it|push it|"
        "push it in|press it down|press it in|push in|press in|push it down)",
        "(press|push|punch|click|hit) (down|in|on|down on|in on) [top of] X",
        "(bring|move|push|press|drive|lower) HAND (down|down on|down onto|onto|on|into) X "
        "(until it is pressed|to press it|and press|and push|until it clicks|so it is pressed|"
        "until it goes down|till it clicks|and press it|and push it|and press it down|"
        "so that it is pressed|until it is down|until it is pushed in|and press down)",
    ),
}
STATES: dict[str, tuple[str, ...]] = {
    "touch": (
        "HAND be [in] [direct|physical|actual] (contact|touch) with X",
        "HAND be (touching|against|on|tapping|poking|contacting|in contact with|at|meeting|"
        "pressed against|resting on|resting against|up against|right on|brushing|reaching|"
        "right against|in touch with|on top of and touching|feeling|leaning on|in contact and "
        "touching|patting|prodding|joined to|joined with|right up against) X",
        "X be (touched|tapped|poked|contacted|prodded|patted|reached|booped|felt|met|touched on) "
        "[{BY}]",
        "X be (touching|in contact with|against|in touch with|up against) HAND",
        "X be in contact [{BY}]",
        "[there be] [physical|direct] (contact|touch) (between HAND and X|with X|between X and "
        "HAND|on X|of HAND and X|of HAND with X|of HAND on X|of X|from HAND to X|of X by HAND)",
        "HAND and X be (touching|in contact|in touch|meeting|together touching)",
        "X and HAND be (touching|in contact|in touch|meeting)",
        f"[just] [little] {_TAP} (on|of|to|for|at) X",
        "HAND (contact|touch|tap|poke) (with|on|to|of) X",
    ),
    "above": (
        "HAND be [{HOVER_ING}|{HOVER_ED}|positioned|placed|located|situated|suspended|poised|"
        "centred|centered|found|parked|held|up|somewhere|there|dangling|in hover|in place|"
        "in position|in air|stationed|raised|lined up|aligned|flying|moved|brought|put] {ABOVE} X",
        "X be [positioned|located|situated|sitting|lying|resting|found] "
        "(under|underneath|below|beneath|directly under|directly below|directly beneath|"
        "directly underneath|right under|right below|right beneath|right underneath|"
        "just below|just under|just beneath|straight below|straight under) HAND",
        "(position|place|spot|point|hover|space|hovering|somewhere|air) {ABOVE} X",
        "HAND be in (space|air|position|place|spot) {ABOVE} X",
    ),
    "left_of": (
        "HAND be [{HOVER_ING}|{HOVER_ED}|positioned|placed|located|situated|stationed|found|"
        "moved|brought|put|set|waiting|somewhere|there|over|in place|in position|held] {LEFT}",
        "X be (to|on|at) right [{OFSIDE}] of HAND",
        "HAND be {LEFT} [side]",
    ),
    "right_of": (),
    "far": (
        "HAND be [very|really|quite|so|well|way|moved|kept|kept well|held|placed|positioned|"
        "located|brought|staying|standing|somewhere|pulled|withdrawn|parked|retracted] {AWAY} X",
        "HAND be [moved|at|kept at|placed at|held at|to] {WIDE} (distance|gap) [away] "
        "(from|to|off) X",
        "[there be] [{WIDE}|lots of|plenty of|lot of|some] (distance|gap|space|room|separation) "
        "between (HAND and X|X and HAND)",
        "(distance|gap|space|separation) between (HAND and X|X and HAND) be "
        "(large|big|wide|great|long|generous)",
        "(HAND and X|X and HAND) be [very|well|wide|quite] (far apart|apart|well apart|"
        "far from each other|far away from each other)",
    ),
    "next_to": (
        "X be [{SHOVE_ED}|located|situated|standing|sitting|resting|lying|waiting|parked|found|"
        "right|nestled|nestling|snug|staying|close|stationed|all way|tucked|snuggled up|placed "
        "right|side by side] [{ALONG}] {NEAR} Y",
        "X be [{SHOVE_ED}] [{ALONG}] {UPTO} Y",
        "X be (neighbour|neighbor|close neighbour|next door neighbour|neighbours|companion|"
        "direct neighbour|near neighbour|nearest neighbour) (of|to|with) Y",
        "X be Y 's (neighbour|neighbor|companion)",
        "X be (at|by|on|to) Y 's side",
        "X be [on|at|by|to] (side|flank|one side|either side) of Y",
        "X be (touching|joined to|joined with|paired with|united with|meeting|kissing|"
        "in contact with|in company of|reunited with|joining) Y",
    ),
    "lifted": (
        "X be [{LIFT_ED}|held|kept|lifted clear|hovering|floating|suspended|hanging|flying|"
        "hoisted|carried|dangling|brought|moved|taken|pulled|picked|scooped] {UP} [{BY}]",
        "X be ({LIFT_ED}|held up|picked up|lifted|airborne|levitating|flying|hovering|"
        "off of it|suspended|held aloft|lifted up|scooped up|risen|rising|in lifted position|"
        "in raised position|in lifted state|held high|in hand and raised|brought up|"
        "carried up|high|lifted clear|being lifted) [{BY}]",
        "X (rise|rises|go|goes|fly|flies|lift|lifts|come|comes|float|floats|hover|hovers|"
        "levitate|levitates|leave table|leaves table|leave ground|leaves ground|take off|"
        "takes off|ascend|ascends|soar|soars|leaves surface|leave surface|leaves floor) "
        "[up|off|right up] [{UP}]",
        "(lift|lifting|raising|hoisting|elevation|picking up|pick up|lift off|hoist) of X [{UP}]",
        "HAND be {HOLDING} X {UP}",
        "HAND (hold|holds|has|have|with) X {UP}",
        "(table|ground|floor|surface) [no more] under X (be empty|be clear)",
    ),
    "on": (
        "X be [{PUT_ED}|{CARRY_ED}|{STACK_ED}|sitting|standing|resting|lying|located|situated|"
        "right|perched|found|down|balanced|settled|piled|waiting|squarely|stacked up|home|"
        "parked|safe|safely|nicely|snugly] [{ALONG}] [{DOWN}] ({ON} Y|({ON}|{ATMARK}) M) [{BY}]",
        "X (go|goes|belong|belongs|come|comes|land|lands|sit|sits|rest|rests|stand|stands|move|"
        "moves|get|gets|lie|lies|live|lives|arrive|arrives|travel|travels|settle|settles|perch|"
        "perches|balance|balances) [{ALONG}] [{DOWN}] [safely] ({ON} Y|({ON}|{ATMARK}) M)",
        "X be (placed|put|where|right where|there where|located where|moved to where|to be "
        "where|exactly where) [Y|at Y|on Y|onto Y]",
        "X be (where|right where|moved to where|put where|placed where|set where) Y is",
        "X be ({SHOVE_ED}|{CARRY_ED}|{PUT_ED}) [over|across] (to|onto) where (Y|M) is",
        "Y be (supporting|holding|carrying|bearing|receiving|under|underneath|beneath|below|"
        "directly under|directly below|directly beneath|right under|right underneath|"
        "directly underneath|right beneath|right below) X [{UPON}]",
        "Y (support|supports|hold|holds|carry|carries|bear|bears|receive|receives|have|has|get|"
        "gets|with) X [standing|sitting|resting|lying|stacked|placed|piled|right] [{UPON}]",
        "Y be (covered|topped|crowned|occupied|capped) (by|with) X",
        "X be (covering|topping|crowning|occupying|capping) Y",
        "X (cover|covers|top|tops|crown|crowns|occupy|occupies|reach|reaches) Y",
        "{TOWERNOUN}",
        "X (on top|above|at top|over|uppermost|on top of it|higher|on upper level) [and|with|,] Y "
        "(at bottom|on bottom|below|underneath|beneath|under|under it|lower|as base|below it)",
        "X be (top|upper|top one|upper one|higher one|top cube|top block|top part) [and|,|with] "
        "Y [be] (bottom|bottom one|lower|lower one|base|lower cube|bottom cube|bottom block)",
        "X be (at|on|in) (top|upper position|upper place) [and|with|,] Y [be] (at|on|in) "
        "(bottom|base|lower position)",
        "(delivery|placement|transfer|transport|placing|moving|positioning|stacking|setting) of X "
        "({ON} Y|({ON}|{ATMARK}) M)",
        "X delivery to Y",
    ),
    "under": (
        "Y be [{PUT_ED}|{STACK_ED}|sitting|standing|resting|lying|perched|stacked] "
        "[directly|right|just] (above|over) X",
        "X (at bottom|on bottom|below|underneath|beneath|as base|first|down|lower|down below|"
        "under|for base|at base|on table|is base|as bottom|be below|be under|be at bottom|"
        "be on bottom|be base) [and|with|,|then] Y [goes|be|sits] "
        "(at top|on top|above|on it|over it|on top of it|over|up top|upper|up|up above|higher)",
    ),
    "inside": (
        "X be [{PUT_ED}|{STOW_ED}|{CARRY_ED}|sitting|resting|lying|located|safe|safely|found|"
        "stored away|tucked away|put away|packed away|stashed away|stowed away|waiting|away|"
        "snug|hidden away|all way|somewhere|nicely|snugly|shut|enclosed|contained|home|"
        "well] [{ALONG}] [{DOWN}] {IN} Y [{BY}]",
        "X be (put away|stored away|stowed away|stowed|stashed away|tucked away|packed away|"
        "stored) ",
        "X (go|goes|belong|belongs|come|comes|land|lands|rest|rests|move|moves|get|gets|sit|"
        "sits|lie|lies|live|lives|fall|falls|drop|drops|travel|travels|slide|slides) [{ALONG}] "
        "[{DOWN}] [away] {IN} Y",
        "X (enter|enters) Y",
        "Y be (holding|containing|storing|housing|keeping|home to|home of|home for) X [{WITHIN}]",
        "Y (hold|holds|contain|contains|have|has|receive|receives|get|gets|store|stores|house|"
        "houses|with|keep|keeps|hide|hides) X [lying|sitting|resting|placed|stored] [{WITHIN}]",
        "Y be (filled|loaded|occupied|stocked) (with|by) X",
        "inside Y be X",
        "(storage|placement|placing|putting|storing|stowing) of X {IN} Y",
    ),
    "inserted": (
        "X be [{INSERT_ED}|sitting|resting|lying|located|firmly|fully|safely|snug|snugly|"
        "all way|standing|found|tight|tightly|deep|home|lodged|nicely|completely|right|well|"
        "sitting snugly|securely|down] [{ALONG}] [{DOWN}] {IN} Y [{BY}]",
        "X be [fully|all way|completely|safely|snugly|firmly|properly] (inserted|plugged in|"
        "slotted in|seated|docked|installed|home|in place|pushed in|in|slotted|plugged|"
        "slotted home|pushed home|lodged|sheathed|mounted|put in|fitted|fitted in|embedded) "
        "[{HOME}]",
        "X (go|goes|fit|fits|slide|slides|enter|enters|drop|drops|belong|belongs|come|comes|get|"
        "gets|slip|slips|sit|sits|rest|rests|sink|sinks|land|lands|move|moves|live|lives|plug|"
        "plugs|penetrate|penetrates|meet|meets|settle|settles) [{ALONG}] [{DOWN}] [home] "
        "({IN}|through) Y",
        "X (enter|enters|fill|fills|penetrate|penetrates|occupy|occupies|plug|plugs|block|"
        "blocks) Y",
        "Y be (holding|containing|swallowing|taking|receiving) X [{WITHIN}]",
        "Y (hold|holds|contain|contains|have|has|receive|receives|get|gets|swallow|swallows|"
        "take|takes|with|want|wants|need|needs|accept|accepts|be home for|be for) X [{WITHIN}]",
        "Y be (filled|plugged|occupied|blocked|closed|stopped up|filled up|taken|stopped|"
        "sealed|corked) (by|with) X",
        "inside Y be X",
        "(insertion|docking|inserting|placement|putting) of X [{IN} Y]",
        "X insertion [{IN} Y]",
        "X [and] Y be (joined|together|mated|united|fitted together|connected)",
    ),
    "open": (
        "X be [fully|wide|all way|completely|{DRAW_ED}|left|kept|standing|held|found|slid|"
        "in|to be|made|lying|back] {OPENED} [{BY}]",
        "X be (opened|opened up|open|opened out|extended|in open position|in open state|ajar and "
        "open|drawn|opening|at its open position|in its open position) [{BY}]",
        "X (open|opens|slide|slides|come|comes|go|goes|pull|pulls|stand|stands|roll|rolls|glide|"
        "glides|move|moves|open|opens) {OPENED}",
        "X (open|opens) [up]",
        "(opening|opening up) of X",
        "from closed [to|X be|it be|be] {OPENED} X",
        "X (from|be from) closed [to|be|it be|become] {OPENED}",
    ),
    "closed": (
        "X be [fully|all way|completely|tightly|tight|{SHUTTING_ED}|left|kept|firmly|found|"
        "properly|to be|made|nicely|back] {SHUT} [{BY}]",
        "X be (closed up|closed|shut|shut up|sealed|retracted|closing|in closed position|"
        "in closed state|home|in its closed position|in shut position) [again] [{BY}]",
        "X (close|closes|shut|shuts|slide|slides|go|goes|come|comes|roll|rolls|move|moves|glide|"
        "glides|stay|stays) {SHUT}",
        "X (close|closes|shut|shuts) [up|again]",
        "(closing|closure|shutting) of X",
        "X (from|be from) open [to|be|it be|become] {SHUT}",
    ),
    "pressed": (
        "X be [fully|all way|completely|being|{DIP_ED}|properly|well] (in|down|pressed|"
        "pushed|depressed|all way in|all way down|inward|inwards|pressed in|pressed down) [{BY}]",
        "X be [fully|all way|being] ({PRESS_ED}|pushed down|pushed in|hit|activated|"
        "pressed in|held down|held in|depressed|in pressed state|in pressed position|clicked|"
        "in its pressed state|in its pressed position|in pressed down position|engaged|switched|"
        "held pressed|under pressure|in down position|triggered|pressed on|actuated|punched|"
        "given press|given push) [down|in] [{BY}]",
        "X (go|goes|click|clicks|sink|sinks|move|moves|get|gets) "
        "(down|in|inwards|inward|in and clicks|pressed|pushed|downwards|all way down|clicked)",
        f"{_PUSHED} (of|on|for) X [{{BY}}]",
        "X (press|push|click|press in|push in|press down|punch|hit|poke)",
        "(pressing|pushing|hitting|clicking|activation|depression) of X",
        "HAND be (pressing|pushing|depressing|holding down|hitting|pushing on|pressing on|"
        "pressing down on|pushing down on|pressing down|pushing in|clicking) X [down|in]",
        "[there be] pressure on X",
    ),
}
BARE: dict[str, tuple[str, ...]] = {  # where the hand is to be, after what says that it is wanted
    "above": ("{ABOVE} X",),
    "left_of": ("{LEFT}",),
    "right_of": ("{RIGHT}",),
    "far": ("{AWAY} X",),
}

_TOP = (
    "(on top|at top|above|up top|on its top|on top of it|over|upper|up|on upper level|at very top)"
)
_LOW = (
    "(at bottom|on bottom|below|underneath|beneath|as base|under|at base|under it|lower|down "
    "below|down|as bottom)"
)
_KIT = (
    "(tower|stack|pile|two cube tower|little tower|small tower|small stack|little stack|tower of "
    "two|tower of two cubes|two block tower|nice tower|tall tower|tower of cubes|tower of blocks)"
)
_BUILD = (
    "(build|make|create|form|construct|set up|build up|erect|give me|do|have|assemble|i want|get)"
)
_FINE = "[of ANY and ANY|from ANY and ANY|with ANY and ANY|out of ANY and ANY|from them|of both]"
SHARED = {  # parts of the patterns above
    "TOPMOST": _TOP[1:-1],
    "KIT": _KIT[1:-1],
    "BUILD": _BUILD[1:-1],
    "BY": "by HAND|using HAND|with HAND|by HANDLE|by its HANDLE|by using HANDLE|with HANDLE|"
    "using HANDLE|by pulling HANDLE|by pulling on HANDLE|by pulling|by pushing|by pulling it|"
    "by pushing it|by pushing HANDLE|by pushing on HANDLE|by tugging HANDLE|by grabbing HANDLE|"
    "by gripping HANDLE|by drawing HANDLE|by sliding it|by lifting it|by picking it up|"
    "by carrying it|by its edge|by robot|by lifting|by gripping it|by grasping it|"
    "by pressing it|by pushing it down|by pushing it in|by pulling it out|by pressing down|"
    "by pressing on it|by grabbing it|by stacking it|by stacking|by inserting it|from above|"
    "from top|by its front|by lowering it|by moving HANDLE|by means of HAND|by means of HANDLE|"
    "with help of HAND|by sliding|via HANDLE|from its HANDLE|at HANDLE|on HANDLE",
    "UPON": "on it|on top|on top of it|on its top|upon it|on itself|standing on it|on its back|"
    "sitting on it|resting on it|on top of itself|atop it|above it|above|on its surface|over it",
    "WITHIN": "in it|inside|inside it|within|within it|inside itself|in|inside of it|in itself",
    "OPENED": "open|out|opened|wide open|all way out|all way open|fully open|completely open|"
    "opened up|to open|towards HAND|toward HAND|outward|outwards|out open|out all way|towards me|"
    "open wide|toward me|fully out|fully opened|right out|right open|pulled out|pulled open|"
    "slid open|slid out|drawn out|extended|fully extended|to its open position|"
    "into open position|to open position|until it is open|until it opens|till it is open|"
    "till it opens|so it is open|so it opens|until open|till open|so that it is open|"
    "so that it opens|until it is opened|out to open|out of its housing|out until it is open|"
    "out to open it|to open it|out until it opens|open again|outside|into being open|"
    "in open position|in open state|to open state|all way until it is open|until it is out|"
    "out of cabinet|out of desk|in its open position|back open|until it is fully open",
    "UNTILOPEN": "until it is open|until it opens|till it is open|till it opens|to open it|"
    "so it opens|so that it opens|so it is open|until it comes out|till it comes out",
    "SHUT": "shut|closed|in|back in|back into place|close|back shut|back closed|all way in|"
    "all way shut|all way closed|fully shut|fully closed|fully in|home|back home|inward|inwards|"
    "to close|to close it|until it is closed|until it closes|until it is shut|until it shuts|"
    "till it is closed|till it closes|till it is shut|till it shuts|so it is closed|so it closes|"
    "so it is shut|so that it is closed|so that it closes|so that it is shut|until closed|"
    "until shut|till closed|till shut|completely shut|completely closed|tight shut|tightly shut|"
    "back to closed|to its closed position|into closed position|to closed position|"
    "back to its closed position|home so it is closed|home so that it is closed|home until "
    "it is closed|in until it is closed|in until it closes|in until it is shut|in so it is "
    "closed|in so that it is closed|in to close it|away|into its place|back into its place|"
    "back in place|in again|closed again|shut again|right in|right back in|back inside|inside|"
    "back to where it was|into its housing|back into its housing|back to its place|into place|"
    "closed up|nice and shut|to closed state|in closed position|into cabinet|back into cabinet|"
    "into desk|flush|in until it shuts|in all way|back in again|back in until it is closed|"
    "back in until it is shut|home again|in till it is shut|in till it is closed|to shut it|"
    "until it is fully closed|until it is completely closed|in and closed|back in and closed",
    "HOME": "home|in|all way in|into place|in place|all way|all way home|where it belongs|"
    "where it goes|where it fits|all way down|right in|right home|in there|in its place|"
    "into its place|down into place|fully in|snugly|snugly in|fully|completely",
    "ATMARK": "at|to|over to|up to|across to|over at|right at|right to|all way to|down at|"
    "directly at|directly to|straight to|in|into|within|inside|inside of|so it is on|"
    "so that it is on|until it is on|till it is on|until it is at|till it is at|so it sits on|"
    "so that it sits on|until it rests on|till it rests on|until it sits on|to be on|to sit on|"
    "to rest on|so it rests on|so that it rests on|until it reaches|till it reaches|to reach|"
    "so it is at|so that it is at|so it ends up on|so that it ends up on|until it lies on|"
    "until it stands on|to cover|so it covers|so that it covers|until it covers|to lie on|"
    "to land on|and onto|toward and onto|over and onto|until it gets to|over the top of|"
    "to top|to centre of|to center of|in centre of|in middle of|on middle of|at centre of|"
    "on centre of|in center of|on center of|to middle of|at center of|onto centre of",
    "TOWER": f"{_BUILD} {_KIT} {_FINE} [with|,|by having|so that|so] X [is|being|be|goes|on] "
    f"[{_TOP[1:-1]}] [of] [and|,] Y [is|being|goes|be] {_LOW}|"
    f"{_BUILD} {_KIT} {_FINE} [with|,|by having|by putting|so that|so|where] X [is|being|be|goes] "
    f"[stacked|sitting|resting|put|placed] "
    "(on top of|on|above|over|onto|on top|atop|upon) Y|"
    f"{_BUILD} {_KIT} [of|with|from] X (on|on top of|over|above|atop|onto|upon) Y",
    "TOWEROVER": f"{_BUILD} {_KIT} {_FINE} [with|,|by having|so that|so] X [is|being|goes|be] "
    f"{_LOW} [and|,|with] Y [is|being|goes|be] {_TOP}",
    "TOWERNOUN": f"{_KIT} [of|with|from|,] X [is] (on|on top of|over|above|atop|on top|upon) Y|"
    f"{_KIT} [with|,] X [is] {_TOP} [and|,] Y [is] {_LOW}",
}  # fmt: skip
for _name in ("ORDERS", "STATES"):
    _table = globals()[_name]
    _table["right_of"] = tuple(
        p.replace("{LEFT}", "{RIGHT}").replace(" right [{OFSIDE}]", " left [{OFSIDE}]")
        for p in _table["left_of"]
    )
for _one, _other in (("left", "LEFT"), ("right", "RIGHT")):
    SHARED[_other] = (
        f"{{SIDE}} {_one} [{{OFSIDE}}] of X|{{SIDE}} X 's {_one} [{{OFSIDE}}]|"
        f"{{SIDE}} {_one} {{OFSIDE}} X|[to] {_one}ward of X|[to] {_one}wards of X|"
        f"{_one} from X|[to] (place|spot|position|point|area|somewhere) "
        f"[on|to|at] {_one} [{{OFSIDE}}] of X|in (place|spot|position) [on|to|at] "
        f"{_one} [{{OFSIDE}}] of X"
    )
