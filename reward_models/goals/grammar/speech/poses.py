"""What can be asked of a body that moves itself: orders and states, as in ``deeds``.

HAND is the body here. A state begins with "HAND be"; what only names the goal ("a front flip",
"arms up") is listed with the orders, as it needs no one who does it.
"""

from __future__ import annotations

_OWN = "[your|its|his|her|their|these|those|HAND 's]"
_BOTH = "[both|both of|two|all two]"
_ONE = (
    "[do|perform|execute|make|turn|land|complete|pull off|throw|try|attempt|carry out|have|"
    "achieve|give me|give us|show me|show us|nail|demonstrate|produce|go for|go into|manage|"
    "stick]"
)
_NICE = (
    "[one|single|full|complete|whole|nice|beautiful|lovely|big|proper|good|perfect|wonderful|"
    "fancy|spectacular|nice big|great|little|clean|real|amazing|cool]"
)
_FLIPS = "(flip|somersault|salto|flips over|flip over|summersault|flipping|somersaulting|flip jump)"
_TUMBLE = (
    "(flip|somersault|flip over|turn over|tumble over|go head over heels|go heels over head|"
    "rotate once|do flip|do somersault|do salto|turn somersault|turn flip|jump and flip|jump up "
    "and flip|hop and flip|flip yourself|flip itself|flip HAND|flip yourself over|flip itself "
    "over|flip HAND over|somersault over|go for flip|go for somersault|make flip|make somersault|"
    "perform flip|perform somersault|complete flip|execute flip|leap and flip|spring into flip|"
    "tumble|vault over|turn head over heels|throw yourself into flip|throw flip|roll over in air|"
    "spin over|flip right over|flip all way over|flip head over heels|somersault head over heels|"
    "do full flip|do one flip|flip through air|flip in air|flip over in air|perform full flip|do "
    "complete flip|make full flip|flip once|turn somersault in air|do flip over)"
)
_AIR = (
    "[in air|through air|in mid air|into air|midair|over|for crowd|for kids|for audience|for "
    "everyone|and land|and land it|and land on your feet|and land safely]"
)
_WHOSE = "(leg|legs|foot|paw|limb|leggy|limbs|feet)"
_LEG = (
    f"({_OWN} {_WHOSE}|one of {_OWN} {_WHOSE}|one {_WHOSE}|one of four legs|any leg|some leg|one "
    f"of your four legs|any of {_OWN} legs|one of those four legs|one of its four legs|one single"
    f" leg|any one of {_OWN} legs|one of {_OWN} little legs|little leg|one little leg|HAND 's leg"
    f"|at least one leg|one of legs of HAND|leg of HAND|spider leg|one spider leg)"
)
_ATME = (
    "[at me|to me|at us|to us|at camera|to camera|at crowd|to crowd|to everyone|at everyone|to "
    "everybody|at everybody|to fans|at fans|for fans|for crowd|for camera|to audience|at audience"
    "|to people|at people|to friends|to my friends|to my friend|to my family|for everyone|to "
    "class|at class|to grandma|at grandma|to kids|to children|at kids|at children|to my kids|to "
    "mum|to mom|to dad|to neighbours|to spectators|to judges|to judge|to public|to folks|at folks"
    "|to visitors|to guests|goodbye|hello|hi|bye|bye bye|to say hello|to say hi|in greeting|as "
    "greeting|like saying hello|like you mean it|hello to me|hello to us|hello to crowd|hello to "
    "everyone|to greet us|to greet me]"
)
_ABOUT = (
    "[in air|about|around|back and forth|up in air|up and down|side to side|from side to side|to "
    "and fro|through air|left and right|in greeting|high|hello|hi|goodbye|up|overhead|off ground]"
)
_WAVE = "(wave|wiggle|shake|swing|wag|waggle|flap|waft|twirl)"
_ARMS = (
    f"({_BOTH} {_OWN} (arms|hands)|{_OWN} {_BOTH} (arms|hands)|{_BOTH} (arms|hands) of HAND|arms "
    f"and hands)"
)
_ARMUP = (
    "(up|high|up high|overhead|in air|into air|up in air|up into air|high in air|high up|to sky|"
    "to ceiling|towards sky|towards ceiling|toward sky|toward ceiling|to heaven|to heavens|above "
    "head|over head|above your head|over your head|above its head|over its head|above his head|"
    "over his head|above her head|over her head|up above your head|up over your head|up above its"
    " head|up over its head|up above head|up over head|aloft|skyward|skywards|upward|upwards|up "
    "to sky|up to ceiling|up towards sky|up toward sky|up overhead|high above your head|high "
    "above its head|high over your head|high above head|high over head|up there|straight up|"
    "straight up in air|all way up|in sky|above your shoulders|above its shoulders|up above your "
    "shoulders|above shoulders|above shoulder height|above shoulder level|over shoulders|up so "
    "high|right up|up and over head|to roof|up to roof|up in sky|up top)"
)
_LIFTARM = (
    "(raise|lift|put|hold|keep|throw|stretch|reach|stick|get|bring|move|hoist|elevate|extend|have"
    "|thrust|push|pop|shoot|fling|point|place|swing|punch|pump|wave|take|shove|send|lift up|raise"
    " up|put up|hold up|reach up|stretch up|throw up|bring up|stick up|let)"
)
_KNEES = (
    "(on|onto|on to|upon|to|down on|down to|down onto|on both|onto both|to both|on two|onto two) "
    "(knees|your knees|its knees|his knees|her knees|their knees|both knees|both your knees|both "
    "its knees|both of your knees|both of its knees|your two knees|two knees)"
)
_KNEEL = (
    "(kneeling|kneeled|knelt|kneel) [down] (position|pose|posture|stance|state|place|"
    "configuration|attitude|down position|stand)"
)
_FEET = (
    "(feet|your feet|its feet|his feet|her feet|their feet|both feet|your two feet|its two feet|"
    "two feet|both your feet|both its feet|your legs|its legs|his legs|two legs|both legs|your "
    "own feet|his own feet|its own feet|your own two feet|its own two feet|its own legs|your own "
    "legs|own two feet)"
)
_UPRIGHT = (
    "(upright|up straight|up tall|tall|straight|upright and tall|up|tall and straight|straight up"
    "|up nice and tall|erect|up right|straight and tall|up nice and straight|bolt upright|"
    "vertical|vertically|up upright|proud|tall and proud|up proudly|up on two legs|up proud)"
)
_STANDING = (
    "(standing|upright|standing up|erect|stand up|stand|vertical|straight up|up|on feet) [up|"
    "upright] (position|pose|posture|stance|state|place|configuration|attitude)"
)
_BACK = "(your back|its back|his back|her back|back|their back|HAND 's back|back of HAND)"
_ONBACK = (
    f"(on|onto|on to|over on|over onto|over on to|flat on|flat onto|down on|down onto|upon|right "
    f"onto|right over onto|down flat on|over to|round onto|all way onto|all way over onto) "
    f"{_BACK}"
)
_BELLYUP = (
    "(belly up|tummy up|belly side up|stomach up|legs up|feet up|upside down|legs in air|feet in "
    "air|legs up in air|feet up in air|belly to sky|belly to ceiling|belly facing up|belly upward"
    "|belly upwards|with [your|its] (belly|tummy|stomach|legs|feet) (up|in air|to sky|up in air|"
    "facing up|to ceiling|upwards|upward|pointing up|skyward|towards sky|towards ceiling)|face up"
    "|back down and belly up|back to ground|with [your|its] back (on|to|against) (ground|floor)|"
    "back on ground|back on floor|back against ground|back against floor)"
)
_GROUND = "(ground|floor|deck|dirt|grass|carpet|mat|rug|back)"
_FOOT = (
    "on foot|on those legs|on those two legs|on those two legs of yours|on those legs of yours|on"
    " your own two legs|on its own two legs|on your legs|on its legs|on two legs|on four legs|on "
    "all four legs|on all fours|on both legs|on your two legs|on its two legs|through water|in "
    "water|through waves|along floor|along ground|across floor|across ground|on ground|on floor|"
    "over ground|along track|down track|across field|through pool|with your legs|with its legs|"
    "with his legs|using your legs|using its legs|one hop after another|one step after another|"
    "step by step|hop by hop|hop after hop|step after step|one foot after other|one leg after "
    "other|on one leg|on its one leg|on your one leg|on single leg|on its leg|on your leg|across "
    "water|on its feet|on your feet|on two feet|on its four legs|like HAND|"
    "on your four legs|using all four legs|on leg|by {STRIDE_ING} on [its|one] leg|"
    "by {STRIDE_ING}|by {STRIDE_ING} on foot|with hops"
    "|in hops|with steps|by taking steps|by making hops|by using its legs|by using your legs|like"
    " snake|like cheetah|like frog|like kangaroo|like spider|like ant|like fish|like eel|like "
    "person|like human|like human being|like cat|like soldier|like bunny|like rabbit|{STRIDE_ING}"
    "|across room|across stage|across screen|across arena|across world|in hopping motion|in "
    "walking motion|in swimming motion|down road|on road|along road|along path|down path|across "
    "ground on foot|through air|by moving your legs|by moving its legs|by wriggling|by undulating"
    "|by wiggling|by slithering|on land|by swimming motion|by leaps|by jumps|by hops|by steps|in "
    "leaps|in jumps|in bounds|in leaps and bounds|with leaps|with jumps|with bounds|at run|at "
    "walk|at gallop|at trot|at jog|at canter|at sprint|and keep going|and keep moving|along|and "
    "on|and on and on|as you do|in water like snake"
)
_PACE = (
    "(walk|run|hop|jump|leap|gallop|trot|march|stroll|jog|sprint|swim|step|steps|hops|leaps|jumps"
    "|bounds|strides|crawl|dash|walking|running|swimming|hopping|jumping|stride|wander|trip|"
    "journey|move|movement|little walk|little run|little hop|little swim|little hops|little steps"
    "|few steps|amble|ramble|paddle|dip|hike|strolling|jogging|crawling|galloping|sprinting|"
    "couple of hops|some steps|some hops|some jumps|steady steps|slither|crawl|wriggle)"
)
_GAIT = (
    "(motion|gait|movement|locomotion|progress|action|travel|walk|run|direction|advance|stroll|"
    "progression|march)"
)

ORDERS: dict[str, tuple[str, ...]] = {
    "forward": (
        "{STRIDE} [and {STRIDE}] [yourself|itself|HAND|it|your body|body|its body] [{ALONG}|on] "
        "{FORWARD} [{FOOT}]",
        "{STRIDE} [and|to] {STRIDE} {FORWARD} [{FOOT}]",
        "{STRIDE} {STRIDE} {STRIDE} {FORWARD} [{FOOT}]",
        "{STRIDE} {STRIDE_ING} [{ALONG}] {FORWARD} [{FOOT}]",
        "{STRIDE} {FOOT} {FORWARD}",
        "{FORWARD} {FORWARD}",
        "HAND {FORWARD}",
        "(walk|run|swim|gallop|sprint|jog|march)",  # where else would it go
        "{CRAWLING} [{FOOT}]",
        "(advance|proceed|progress|continue|press on|go on|carry on) {FORWARD}",
        "(make|find|wend|work|pick|walk|run|push|swim|hop|crawl|fight|slither|wriggle|snake) "
        "(your|its|his|her|my|HAND 's) way [{ALONG}] {FORWARD} [{FOOT}]",
        "(make|find|wend) way {FORWARD} [{FOOT}]",
        f"(take|have|do|make|perform|execute|go for|go on|head for|enjoy|start|begin|keep up|come "
        f"for) [some|few|good|nice|big|little] {_PACE} [{{FOOT}}] "
        "[{ALONG}|in] {FORWARD} [{FOOT}]",
        f"(take|make|do) {_PACE} {{FORWARD}} and (advance|advances|go|goes|proceed|progress|"
        "moves on|move on)",
        f"(take|make|do) {_PACE} (to|in) [the] {{FORWARD}} [direction] [and advances|and advance|"
        "and go on|and goes on|and progress]",
        "(go|get|start|begin|keep|set off|set out|head off|head out|come|keep on|continue|"
        "take off|be|carry on|get going|go on|start off|begin to) {STRIDE_ING} [{ALONG}|on|off|"
        "away] {FORWARD} [{FOOT}]",
        "(get|set|start|keep) (going|moving|walking|running|off|out|on) {FORWARD} [{FOOT}]",
        "(set|start|head|take) (off|out) {FORWARD} [{FOOT}]",
        "(get|set|put|start|keep|have) [your|its|those|these|all|his|four|your four|those four|"
        "both|two|its four|your two] (legs|feet|body|HAND|paws|limbs|yourself|itself) "
        "(moving|going|walking|running|in motion|to move|to walk|to go|swimming|hopping|marching) "
        "{FORWARD}",
        "(use|move|drive|work|pump|swing|kick) [your|its|those|these|all|his|four|your four|"
        "both|two|its two|your two] (legs|feet|body|limbs) (to|and|so you|so that you|so it|"
        "so that it|so HAND|so that HAND|such that HAND) "
        "({STRIDE}|{STRIDE_S}) {FORWARD}",
        "(use|move|drive|work|pump|swing|kick) [your|its|those|these|all|his|four|your four|"
        "both|two|its two|your two] (legs|feet|body|limbs) (to|and|so you|so that you|so it|"
        "so that it|so HAND|so that HAND|such that HAND) "
        "(advance|advances|proceed|proceeds|make progress|makes progress)",
        "propel (yourself|itself|HAND|your body|its body|body) [{ALONG}] {FORWARD} [{FOOT}]",
        "(carry|drive|move|send|push|take|bring|get) (yourself|itself|HAND|your body|its body) "
        "[{ALONG}] {FORWARD} [{FOOT}]",
        f"{{FORWARD}} ({{STRIDE_ING}}|{_PACE}) [{_GAIT}] [{{FOOT}}]",
        f"{{STRIDE_ING}} [{_GAIT}|along] [{{ALONG}}|in] {{FORWARD}} [{{FOOT}}]",
        f"{{FORWARD}} {_GAIT} [{{FOOT}}|of HAND]",
        f"{_GAIT} [in] {{FORWARD}} [{{FOOT}}]",
        f"(make|do|perform|produce|show|start) [{{FORWARD}}] {{STRIDE_ING}} [{_GAIT}] [in] "
        "{FORWARD} [{FOOT}]",
        f"(make|do|perform|produce|show|start) {{FORWARD}} ({{STRIDE_ING}}|{_GAIT}) [{_GAIT}] "
        "[{FOOT}]",
        "{STRIDE} (towards|toward|to) (horizon|front|what is ahead|what is in front of you)",
        "make {FORWARD} progress [{FOOT}]",
        "(cover|gain|make) [some] ground {FORWARD}",
        "{FORWARD} (march|ho|walk|run|swim|gallop|hop|go)",
        "{FORWARD} (you go|we go|HAND go|HAND goes|it goes|HAND) [{FOOT}]",
        "(off you go|away you go|here you go|off we go|on you go) {FORWARD} [{FOOT}]",
        "(walk|run|hop|swim|crawl|gallop|march|sprint|trot) it {FORWARD}",
        "{STRIDE} in (forward|forwards|front) [direction|way|manner] [{FOOT}]",
        "(do|perform) {FORWARD} {STRIDE} [{FOOT}]",
    ),
    "front_flip": (
        f"{_ONE} {_NICE} (front|forward|forwards|frontward|frontal) {_FLIPS} {_AIR}",
        f"{_ONE} {_NICE} (frontflip|frontflipping) {_AIR}",
        f"{_TUMBLE} [in air|over] [in|to|towards|toward] "
        "(forward|forwards|front|forward direction|frontwards|ahead|front direction|front way|"
        f"frontward|forwards direction) {_AIR}",
        f"{_ONE} {_NICE} (flip|somersault|salto) (that is|which goes|that goes|going|turning|in|to|"
        f"towards|toward) (forward|forwards|front|forward direction|front direction|forwards "
        f"direction) {_AIR}",
        f"frontflip {_AIR}",
        f"(throw|launch|fling|hurl|put) (yourself|itself) into {_NICE} (front|forward|forwards) "
        f"{_FLIPS} {_AIR}",
        "(flippy|flip|flipped) (flip|flop) [to|towards] (front|forward|forwards)",
        "(flip|somersault) (front|forward|forwards) over",
        "(forward|forwards|front) you flip",
        f"(go|flip) (forward|forwards) (in|into|with) {_FLIPS} {_AIR}",
        f"(jump|hop|leap|spring) [up] (and|into|and do|and perform|and turn|doing|for) {_NICE} "
        f"(front|forward) {_FLIPS} {_AIR}",
    ),
    "back_flip": (),  # the same backwards
    "wave": (
        f"{_WAVE} [with] {_LEG} {_ABOUT} {_ATME}",
        f"{_WAVE} {_LEG} {_ABOUT} {_ABOUT}",
        f"(raise|lift|pick up|hold up|put up|stick up|lift up|raise up|stick out|get|take|hold) "
        f"{_LEG} [up|off ground|up off ground|in air|up in air|into air|high] (and|to|then|,) "
        f"{_WAVE} [it|with it|that leg|leg] {_ABOUT} {_ATME}",
        f"(give|do|make|perform|show|send|offer|throw) [me|us|crowd|everyone|everybody|fans|"
        f"audience|camera|little crowd|people|kids|children] [nice|little|big|friendly|cheerful|"
        f"good|happy|lovely|small|polite] (wave|waving|leg wave|wave hello|hello wave|wave motion|"
        f"waving motion|waving gesture|wave of greeting|wave goodbye) [of|with|using] [{_LEG}] "
        f"{_ABOUT} {_ATME}",
        f"wave {_ABOUT} {_ATME} [with|using] [{_LEG}]",
        f"wave (hello|hi|goodbye|bye|bye bye) {_ATME} [with|using] [{_LEG}]",
        f"(wave|wavey|wavy|wavie) (wave|wavey|wavy|wavie) [wave] {_ATME} [with {_LEG}]",
        f"(say|tell us|tell me) (hi|hello|goodbye|bye|bye bye|hey|good day|good morning|howdy) "
        f"{_ATME} [to them|to people] (with|using|by waving|waving|with wave of|by lifting and "
        f"waving) {_LEG}",
        f"(greet|salute|acknowledge) (me|us|crowd|everyone|fans|audience|people) "
        f"(with|by waving|using|by wave of|with wave of|waving) {_LEG}",
        f"{_LEG} (wave|waves|waving|be waving|be waved|being waved|be wiggling|shaking|wiggling|"
        f"waved|moving back and forth|in waving motion|swinging|be shaking|to wave|to be waved|"
        f"be swinging|be in wave|goes wave) {_ABOUT} {_ATME}",
        f"(leg|one leg|single leg|one legged) (wave|waving|wiggle|waving motion|wave gesture) "
        f"{_ATME}",
        f"(have|let|make|get|set|keep) {_LEG} (wave|waving|wiggling|wave about|shaking|to wave|"
        f"swinging|waved) {_ABOUT} {_ATME}",
        f"wave of {_LEG} {_ATME}",
        f"(move|swing|sway) {_LEG} (back and forth|up and down|from side to side|side to side|"
        f"to and fro|left and right|in wave|in waving motion|like wave|in greeting|in wave motion|"
        f"as if waving|like waving|in waving gesture|as wave) {_ATME}",
        f"(make|do) [leg] (wave|waving) (with|of|using) {_LEG}",
        f"waving [of|with] {_LEG} {_ABOUT} {_ATME}",
    ),
    "lie_down": (
        f"(lie|lay|lay yourself|lay itself|lay HAND|lie yourself|rest|settle|stretch out|sprawl|"
        f"collapse|relax|snooze|nap|sleep|recline|be lying|lie back|lie down|lay down|lie flat|"
        f"rest yourself|be|remain|stay|have rest|take rest|take nap|have nap|have lie down|"
        f"have lie|have little lie down|have snooze|chill|chill out|plop down|flop down|go to "
        f"sleep|"
        f"get down|sunbathe|go down|flop|drop down|fall down|drop|fall|be lying down|be resting|"
        f"stay lying|lounge|crash out|spread out|put yourself down|put yourself|settle down|"
        f"fall over|fall back|lower yourself|lower itself|sink down|sit back) "
        f"[down] [flat|back|out|still|comfortably] {_ONBACK} "
        f"[on {_GROUND}|and stay there|and relax|and rest|and have rest|and stay|and stay put|with "
        f"legs up|with legs in air|with your legs up|with your legs in air|and stay like that|"
        f"belly "
        f"up|and remain there|for nap|for rest|for while|for little rest|for bit|and sleep]",
        f"(lie|lay|lay yourself|lay HAND|go|get|be|turn|roll|flip|flop|rest|stretch out|end up|"
        f"stay|remain|settle|turn yourself|roll yourself|roll over|turn over|flip over|flip "
        f"yourself"
        f"|lie down|lay down|sleep|nap|collapse|sprawl) {_BELLYUP}",
        "lie (down|flat|down flat|flat out|back|back down|still on your back)",
        f"lie [down] [flat] on {_GROUND}",
        "(lay|lay yourself|lay your body|lay itself|lay HAND) down [flat] [on ground|on floor]",
        f"(have|take|go for) [nice|little|good] (lie down|lie|rest {_ONBACK}|nap {_ONBACK}|"
        f"lie down {_ONBACK}|lie {_ONBACK}|snooze {_ONBACK})",
        f"(roll|turn|flip|flop|tip|get|go|drop|fall|tumble|move|put|lay|bring|throw|place|keel|"
        f"swing|topple|settle|switch|end|wind|shift|rotate|lower|end up|come to rest) "
        f"[yourself|itself|HAND|body|your body|its body] [over|right over|up|down|round|around|"
        f"all way over|all way|flat] {_ONBACK} [and (stay|stay there|lie there|lie still|rest|"
        f"relax|"
        f"remain there|stay like that|lie down|stay put|lie flat|sleep)]",
        f"{_ONBACK} [you go|with you|now|HAND]",
        f"{_BELLYUP}",
        f"lying [down] [flat] [{_ONBACK}|on {_GROUND}]",
        f"(lying|resting|supine|lie|recumbent) (down position|position {_ONBACK}|{_ONBACK}|"
        f"pose {_ONBACK}|down {_ONBACK}|position|down pose)",
        "(assume|adopt|take|take up|get into|go into|be in) (supine|lying|lying down|belly up|"
        "lie down) (position|pose|posture)",
        f"back (on|onto|to|down on|flat on|against|touching) {_GROUND}",
        f"(put|place|lay|get|set|rest|press) {_BACK} [down|flat] (on|onto|to|against|flat on|down "
        f"on|flat against) {_GROUND}",
        f"(go|turn|flip|end up|finish) (over|upside down|right over|belly up) and "
        f"(lie|rest|stay|lie down) {_ONBACK}",
        f"(assume|adopt|take|take up|get into|go into|be in) (position|pose) {_ONBACK}",
    ),
    "stand_up": (
        f"(stand|get|rise|come|jump|hop|spring|leap|climb|pull yourself|pick yourself|push "
        f"yourself|lift yourself|raise yourself|get yourself|rise yourself|haul yourself|pop|"
        f"stand yourself|bounce|raise itself|lift itself|pick itself|pull itself|bring yourself|"
        f"go|get HAND|stand HAND|help yourself|scramble|heave yourself|straighten|be) "
        f"[back|right|straight] up [again] [{_UPRIGHT}] [on|onto|on to|to|back onto|back on] "
        f"[{_FEET}] [from floor|from ground|off floor|off ground|and stand|and be tall]",
        f"(get|rise|come|go|jump|spring|stand|climb|be|stay|hop|stagger|struggle|scramble|leap|"
        f"stay up|remain|bounce|end|end up|finish|wind up|get yourself|put yourself|pull yourself|"
        f"raise yourself|return|make it) "
        f"[back|right|up|firmly|straight|steady|up straight|up tall] (to|on|onto|on to|back to|"
        f"back on|up on|up onto|upon|up to) {_FEET}",
        f"(stand|rise|be|get|stay|become|remain|hold yourself|keep|end up|go|straighten) "
        f"{_UPRIGHT} [on {_FEET}|and proud]",
        f"(get|come|rise|move|go|be|return|get back|end|end up|finish|assume|adopt|take|take up|"
        f"get yourself|stay|hold|keep|have|achieve|reach|strike|show|put yourself|change|pull "
        f"yourself|raise yourself|finish up|switch|transition|stand) [up|back|back up] [to|into|in|"
        f"at|onto] [your|its|full|proper|fully] {_STANDING}",
        f"[right] [up] [back] (on|onto|to) {_FEET} [up]",
        f"up (on|onto|to) {_FEET}",
        "(up|get up|stand up) (you get|you go|you come|we go|and stand|and at it|up|onto feet) "
        "[stand up]",
        "(stand|standing|stand up|stand upright|stand tall|stand straight|rise up|get up|rise|"
        "arise|straighten up|get upright|stay upright|stay standing|remain standing|keep standing|"
        "be standing|be upright|be standing up|be standing upright|be up|be standing tall|"
        "end up standing|end up upright|get standing|become upright|be stood up|stand erect|"
        "keep upright|finish standing|finish upright|be on foot|get off floor|get off ground|"
        "get up off floor|get up off ground|get up from floor|get up from ground|go upright|"
        "get yourself upright|get yourself standing|get back up|stand back up|come upright|"
        "up straight|be standing straight|pull yourself upright|hold yourself upright|keep "
        "yourself upright|be upright and standing|be standing and upright|come to stand|"
        "come to standing|rise to standing|rise from ground|rise from floor|remain upright|"
        "stand up and stay standing|stand up and stay up|get up and stand|rise and stand|"
        "be on your feet|upright standing|stand there|be stood|take stand|get to stand|"
        "be standing there|stand in place|upright stance|get to standing|straighten yourself up|"
        "straighten up to stand|stretch up to stand|stand fully upright|be fully upright|"
        "be fully standing|stand fully|stand up fully|rise fully|rise fully upright|standup|"
        "make it up|pick yourself up|pick itself up|stand itself up|get itself up|go to stand|"
        "go to stand up|rise up tall|stand up tall and straight)",
        "standing (up|upright|tall|straight|on feet|erect|pose|position|posture|up straight|up "
        "tall|up on feet|on two feet)",
        "(make|let|get|have|help) (yourself|itself|HAND) (stand|stand up|upright|standing|rise|"
        "get up|stand upright|on feet|up|to stand|to stand up)",
    ),
    "kneel": (
        "kneel [down|downwards|on ground|on floor|down on ground|down on floor|there|before me|"
        "before king|before queen|before us|on both knees|on your knees|on its knees|for me|down "
        "on both knees|down for prayer|in place|down there|before crowd|like knight|like in prayer|"
        "down like knight|as knight|and stay there|and stay kneeling|and stay down|upon ground|"
        "yourself|yourself down|down low]",
        f"(get|go|drop|sink|fall|come|be|lower yourself|lower itself|lower HAND|rest|lean|settle|"
        f"bend|stay|remain|get yourself|put yourself|bring yourself|let yourself|let yourself "
        f"down|ease yourself|ease|end|end up|finish|wind up|crouch|kneel|drop yourself|descend|"
        f"collapse|slump|plop|flop|move|sit|stand|balance|put weight|put your weight|go and get|"
        f"lower|land|support yourself|pop|squat|wait|sink yourself|finish up|throw yourself|fall "
        f"down|sink down|drop down|go down|get down|come down|bend down|settle down|hit) "
        f"[right] [yourself] [down|right down|all way down] {_KNEES}",
        f"(bring|put|place|set|lower|get|touch|plant|press|rest|drop) "
        f"[both|two] [of] [your|its|his|her|their] knees [down|both] "
        f"(to|on|onto|down on|down to|against|touching) {_GROUND}",
        f"[right] [down] {_KNEES} [you go|down]",
        f"(get|go|drop|be|assume|adopt|take|take up|come|move|stay|remain|hold|hold yourself|end|"
        f"end up|finish|strike|show|sink|put yourself|do|have|keep|lower yourself|change|fall|"
        f"settle|transition|achieve|reach|bring yourself|stop|make|finish up|wind up) [down] "
        f"[to|into|in|at|with|onto] {_KNEEL}",
        f"{_KNEEL}",
        "(kneeling|kneeling down|kneeling on ground|kneeling on floor|be kneeling|"
        "be kneeling down|stay kneeling|remain kneeling|end up kneeling|get kneeling|go to kneel|"
        "be knelt|be knelt down|do kneel|go kneel|go kneeling|start kneeling|keep kneeling|"
        "finish kneeling|be in kneeling|finish up kneeling|go into kneeling|come to kneel|"
        "do kneeling|get down to kneel|drop down to kneel|go down to kneel|get down and kneel|"
        "bend your knees and kneel|bend knees and kneel|bend its knees and kneel|"
        "come down to kneel|go into kneel|get into kneel|drop into kneel|sink into kneel|"
        "lower yourself into kneel|lower into kneel|make kneel|perform kneel|do nice kneel|"
        "hit knees|hit your knees|bow down and kneel|have knees on ground|have knees on floor|"
        "be on bended knees|wind up kneeling|be left kneeling|be found kneeling|be seen kneeling)",
        "(both|two|your|its|his|her|both your|both its|both of its|both of your)  knees "
        "[be] (on|to|touching|down on|onto|against|resting on|in contact with) (ground|floor|mat)",
        "knees (on|to|down on|onto) (ground|floor|mat)",
        "(make|let|get|have|help) (yourself|itself|HAND) (kneel|kneel down|kneeling|on knees|"
        "to kneel|to kneel down|onto knees|down on knees)",
    ),
    "raise_arms": (
        f"{_LIFTARM} {_ARMS} [up] {_ARMUP}",
        f"(raise|lift|hoist|elevate|put up|hold up|lift up|raise up|stick up|throw up|bring up|"
        f"reach up|stretch up|keep up|hoist up) {_ARMS} [up]",
        f"(raise|lift|put|hold|stick|throw|bring|reach|stretch|keep) up {_ARMS} [{_ARMUP}]",
        f"(hold|keep|have|get|leave|let|want|put|make|see) {_ARMS} [be] (raised|lifted|up|held up|"
        f"elevated|raised up|lifted up|stretched up|extended up|go up|rise|stay up|reach up|held "
        f"high|extended upward|extended upwards|reaching up|to go up|to rise|hoisted|pointing "
        f"up|raise) [{_ARMUP}]",
        f"{_ARMS} [be|held|to be] (raised|lifted|held|stretched|extended|thrown|elevated|put|"
        f"reaching|pointing|hoisted|sticking|reach|point|go|stay|rise|goes|kept|brought|going|get|"
        f"pointed|moved|thrust|placed|standing) [up] {_ARMUP}",
        f"{_ARMS} [be|to be|get] (raised|lifted|elevated|held up|up|raised up|lifted up|stretched "
        f"up|hoisted|overhead|rise|go up|to go up|pointing up|reaching up|held high|rising|"
        f"going up|to rise|stay up|be up)",
        f"{_ARMS} [be|to be|go|right|way|straight] {_ARMUP}",
        f"(raising|lifting) [of] {_ARMS} [{_ARMUP}]",
        f"(raise|lift) of {_ARMS} [{_ARMUP}]",
        f"reach (for|to|up to|up for|towards|up towards|toward) (sky|ceiling|stars|skies|clouds|"
        f"heavens|roof|sun|moon) (with {_ARMS})",
        f"(reach|stretch|point) [high] {_ARMUP} with {_ARMS}",
        f"(be|stand) with {_ARMS} [raised|held|lifted|stretched|up] {_ARMUP}",
        f"(be|stand) with {_ARMS} (raised|lifted|up)",
        f"(with|have) {_ARMS} [raised|held|lifted|stretched] {_ARMUP}",
        f"{_ARMUP} (with|go) {_ARMS}",
        f"up (go|with) {_ARMS}",
    ),
    "balanced": (
        "(keep|hold|make|get|have|leave|maintain|let|put|stand|help|see|set|balance|bring) HAND "
        "[stay|stand|be|remain|to stay|to stand|staying|standing|balanced|balancing|to be|to "
        "remain|keep|stays|stands] [nice and|steady and|nicely|perfectly|fully|straight and|up "
        "and|right|held] {UPRIGHT} [{BALANCING}]",
        "(keep|hold|make|get|have|leave|maintain|let|help) HAND (balanced|balance|balancing|in "
        "balance|steady|stable|standing|up|stand|stay up|stand up|to stand|in equilibrium|to "
        "stay up|to balance|standing up|steady and upright|from falling|from falling over|"
        "from toppling|from toppling over|from tipping over|from tipping|from falling down|"
        "from dropping|staying up) [{BALANCING}]",
        "(balance|stabilise|stabilize|steady|equilibrate|upright) HAND [{UPRIGHT}] [{BALANCING}]",
        "(keep|hold) (balancing|steadying|holding|holding up|supporting) HAND [{UPRIGHT}] "
        "[{BALANCING}]",
        "(maintain|keep|preserve|hold) (balance|vertical position|upright position|verticality|"
        "equilibrium|balanced position|upright posture|upright stance|balance upright|uprightness|"
        "upright state|vertical posture) [of HAND]",
        "(maintain|keep|preserve|hold) HAND 's (balance|vertical position|upright position)",
        "HAND (stay|stays|stand|stands|remain|remains|keep|keeps|standing|staying|stay up|balance|"
        "balances|balancing|hold|holds|held|kept) [itself|balanced|held|standing|up] {UPRIGHT} "
        "[{BALANCING}]",
        "HAND (stay|stays|balance|balances|remain|remains|keep|keeps) [in|its] "
        "(balance|balanced|balancing|standing|up|steady|stable|equilibrium) [{BALANCING}]",
        "[nice] [and] {UPRIGHT} HAND",
        "HAND {UPRIGHT} [{BALANCING}]",
        "HAND be [held|kept|standing|staying|balanced|balancing|in|maintained|left|kept standing|"
        "still] [nice and|perfectly|fully|held] {UPRIGHT} [{BALANCING}]",
        "HAND be (balanced|balancing|in balance|kept balanced|standing|in equilibrium|stable|"
        "kept in balance|held in balance|kept from falling|kept from falling over|"
        "steady|kept steady|steady and upright|held steady|stabilised|stabilized) [{BALANCING}]",
        "(balance|balancing|balancing act|balancing of|balance of) HAND [{UPRIGHT}] [{BALANCING}]",
        "(prevent|stop|save|protect|guard) HAND from (falling|toppling|tipping|falling over|"
        "toppling over|tipping over|falling down|dropping)",
        "(use|move|drive|slide|shift|push) (cart|base|wagon|trolley) [left and right|back and "
        "forth|about|around|under it|underneath it|beneath it|below it|to and fro|along] (to|so|"
        "so that|and|such that) (keep|hold|balance|stabilise|stabilize|HAND be|HAND stay|HAND "
        "stays|HAND is|HAND stands|HAND remains) [HAND] [balanced|standing|{UPRIGHT}|steady|up]",
        "(do|perform) balancing act with HAND",
        "(do not|never) (let|allow) HAND [to] {TOPPLE}",
        "HAND [should|must|may|shall|does|do|can|will|is|are] (not|never) [ever|to] "
        "({TOPPLE}|{TOPPLE_ING}|{TOPPLE_S})",
        "(use|move|drive|slide|shift|push) (cart|base|wagon|trolley) [left and right|back and "
        "forth|about|around|to and fro|along] (so|so that|such that) HAND [should|must|may|shall|"
        "does|do|can|will] (not|never) {TOPPLE}",
    ),
}
# A back flip is asked for in the words of a front flip, with the direction turned round.
ORDERS["back_flip"] = tuple(
    p.replace("(front|forward|forwards|frontward|frontal)",
              "(back|backward|backwards|rear|reverse|backways|rearward)")
    .replace("frontflipping", "backflipping").replace("frontflip", "backflip")
    .replace("(forward|forwards|front|forward direction|frontwards|ahead|front direction|front way|"
             "frontward|forwards direction)",
             "(backward|backwards|back|backward direction|backwards direction|rearward|rear|"
             "reverse|back direction|rearwards|in reverse)")
    .replace("(forward|forwards|front|forward direction|front direction|forwards direction)",
             "(backward|backwards|back|backward direction|rear|back direction|backwards direction)")
    .replace("(front|forward|forwards)", "(back|backward|backwards)")
    .replace("(forward|forwards|front)", "(backward|backwards|back)")
    .replace("(forward|forwards)", "(backward|backwards)")
    .replace("(front|forward)", "(back|backward)")
    for p in ORDERS["front_flip"]
)  # fmt: skip
SHARED = {
    "FOOT": _FOOT,
    "TOPPLE": "fall|fall over|fall down|tip|tip over|topple|topple over|drop|drop down|tumble",
    "UPRIGHT": "upright|vertical|vertically|straight up|straight|up|up straight|erect|standing up|"
    "straight upwards|pointing up|pointing straight up|up right|in vertical position|"
    "in upright position|in upright posture|in vertical|in balance|straight upright|"
    "perpendicular|standing straight|standing straight up|standing upright|standing tall|"
    "standing|in air|on end|bolt upright|tall|at vertical|in vertical posture|on its end|"
    "pointing upward|pointing upwards|pointing to ceiling|pointing at ceiling|pointing at sky|"
    "upwards|upward|standing vertical|standing vertically|and vertical|balanced upright|"
    "in its upright position|in its vertical position|upright and balanced|upright and steady|"
    "balanced and upright|upright and stable|upright standing|stood up|tall and straight",
    "BALANCING": "on cart|on top of cart|on its cart|on base|by moving cart|by moving base|by "
    "sliding cart|in balance|and balanced|in air|on wheels|balanced|by pushing cart|by driving "
    "cart|and steady|and standing|in its place|on trolley|on wagon|atop cart|atop its cart|atop "
    "base|by balancing it|with cart|using cart|and stable|steadily|on end|through episode|"
    "throughout",
}
