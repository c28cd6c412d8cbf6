"""What carries no goal: politeness, calls, and the words that only introduce a wish.

An opening may stand before another ("hello, I would like you to try to"); after all of them
something must be left that is a goal, word for word.
"""

from __future__ import annotations

_WANT = (
    "(want|need|wish|would like|would love|would really like|would really love|would really "
    "appreciate|would so like|would very much like|would very much appreciate|would dearly love|"
    "would dearly like|would just love|would just like|would also like|would greatly appreciate|"
    "would truly appreciate|would much appreciate|would kindly like|would sure like|would sure "
    "love|would absolutely love|would most like|desire|require|expect|request|prefer|order|ask|am"
    " wanting|am asking|am hoping|hope|would prefer|demand|like|love|would appreciate|am looking|"
    "would want|would enjoy|am keen|would wish|am expecting|command|beg|suggest|propose|recommend"
    "|am requesting|was hoping|was wanting|have always wanted|have long wanted|have always hoped|"
    "was wondering|wished|wanted|would need|vote|pray|insist|long|implore|would be asking|entreat"
    "|am longing|am wishing|will need|will want|would so love|advise|invite|tell|challenge|"
    "instruct|please|encourage|dare|urge|beseech|trust|would adore|fancy|feel like|would fancy|"
    "would kindly ask|have wish|have request|am begging)"
)
_GLAD = (
    "(nice|great|good|lovely|helpful|wonderful|perfect|ideal|fantastic|brilliant|awesome|cool|"
    "super|best|amazing|appreciated|excellent|marvellous|marvelous|terrific|splendid|better|fine|"
    "very nice|really nice|so nice|so good|really good|very good|really great|really helpful|so "
    "helpful|very helpful|fun|so cool|really cool|much appreciated|neat|sweet|useful|delightful|"
    "so great|kind|very kind|so kind|my dream|pleasing|grand|magic|magical|beautiful|ace|smashing"
    "|magnificent|superb|handy|swell|dandy|enough|satisfying|pleasant|fabulous|just perfect|just "
    "great|just lovely|really lovely|so lovely|so much fun|great fun|good fun|just fine|just "
    "right|good idea|nice idea|nice thing|great thing|good thing|optimal|desirable)"
)
_HAPPY = (
    "(happy|glad|grateful|thankful|pleased|delighted|satisfied|very happy|very glad|very grateful"
    "|so happy|so glad|so grateful|really happy|really grateful|content|overjoyed|thrilled|over "
    "moon|most grateful|more than happy|very pleased|very thankful|obliged|much obliged|so "
    "pleased|so thankful|most obliged|eternally grateful|ever so grateful|impressed|very "
    "impressed|so impressed|proud|so proud|very proud|happiest|tickled|really glad|really pleased"
    "|most pleased|most happy|charmed|really impressed|very satisfied)"
)
_TASK = (
    "(task|goal|job|mission|aim|objective|assignment|target|purpose|challenge|duty|exercise|"
    "routine|trick|drill|idea|plan|order|request|wish|desire|hope|todo|instruction|command|thing "
    "to do|desired result|result|outcome|end state|final state|end result|final result|desired "
    "state|desired outcome|desired end state|goal state|target state|end goal|final goal|end "
    "position|final position|final picture|correct result|right result|expected result|success|"
    "what counts|end condition|requirement|success condition|success criterion|finish line|"
    "solution|goal here|task here|job here|idea here|next step|next task|first job|main goal|one "
    "goal|only goal|one job|only job|your one job|step|next job|trick|target configuration|final "
    "configuration|wanted result|wanted state|required state|required result|required end state|"
    "final arrangement|goal of game|name of game|aim of game|point|object of game|object of "
    "exercise|whole point|winning condition|win|victory|done|finished|test|assignment today|work|"
    "today s task|today s job|my wish|task for today|job for today|task for you|job for you|task "
    "for now|task of robot|mission for today|mission today|task today|job today|goal today|"
    "completion|pass condition|end|finish|final scene|final situation|situation we want|ask|"
    "ending|destination|end picture|end pose|final pose|pose|required pose|target pose|goal pose|"
    "desired pose|finishing position|finish position|to do|deliverable|behaviour|desired "
    "behaviour|required behaviour|behavior|desired behavior|required behavior|action|required "
    "action|desired action|motion|required motion|desired motion)"
)
_DONE = (
    "(finished|done|complete|completed|over|ready|finished with it|all done|set|said and done|all"
    " finished|all over|all ready|ended)"
)
_END = (
    "(end|end of it|end of this|end of episode|end of day|end of all this|end of task|finish|"
    "close|very end|end of run|end of try|final moment|time you finish|time you are done|time you"
    " are finished|time it is over|time you stop|end of movement|end of attempt|end of trial|end "
    "of everything|end of motion|end of your turn|last|end of job|end of exercise)"
)
OPENINGS = (
    # a call, a greeting
    "(please|kindly|hey|hi|hello|ok|okay|alright|all right|right|now|well|oh|um|uh|er|erm|ah|so|"
    "and so|so then|right then|ok then|okay then|now then|well then|come on|go on|go ahead|here "
    "we go|and|then|and then|also|hm|hmm|listen|look|look here|see here|say|thanks|yes|yeah|sure|"
    "again|once more|once again|dear|ho|yo|oi|simply|just|perhaps|maybe|possibly|if possible|"
    "today|this time|quick|cheers|sorry|excuse me|pardon me|attention|great|good|cool|fine|lovely"
    "|perfect|nice|alrighty|righto|righty|aye|welcome|first of all|to begin|to start|for starters"
    "|in short|basically|essentially|simply put|in other words|at last|ready|steady|steady now|"
    "ready steady|tada|voila|hopefully|ideally|preferably|certainly|of course|obviously|naturally"
    "|eventually|ultimately|on your marks|up next|here goes|chop chop|hup|hop|hep|hop hop|hup hup"
    "|woof|meow|beep|boop|beep boop|beep beep|ding|ding ding|ding dong|boing|boing boing|whee|wee"
    "|woo|woohoo|yay|yippee|zoom|zoom zoom|vroom|whoosh|ribbit|go|go go|go go go|come|come now|"
    "come along|oh please|pretty please|oh dear|my goodness|wow|ooh|aha|haha|hahaha|hee hee|lol|"
    "hello there|hi there|hey there|hey you|hey now|good morning|good day|good evening|good "
    "afternoon|howdy|greetings|hiya|aloha|bonjour|hola|ahoy|my friend|friend)",
    "(please|kindly) (could|can|would|will) you",
    "[,]",
    "let us (just|now|please|all|quickly|try and|try to|go and|go ahead and|have you|see about|go"
    "|get to|see if we can|see if you can|see whether you can|make it so|do this|do it|play|start"
    "|start with|begin|begin by|begin with|start by|start off by)",
    "let us [see|watch|have|get|find|witness|observe|admire]",
    "let (me|us|them|everyone|my kids|kids) (see|watch|observe|admire|look at|witness|have|find|"
    "hear) [you]",
    "(see|try|find out) (if|whether) (you|HAND|we) (can|could) [manage to]",
    # requests
    "could HAND [now|please|just|possibly|perhaps|maybe|kindly]",
    "(could|can|would|will|might|may) (you|we) [now|just|kindly|perhaps|maybe|possibly|also|ever|"
    "ever so kindly|at all|all|try and|go and|go ahead and|both|be so good as to|help me|help|"
    "help to|see to it that|make sure that|make sure|by any chance|for once] ",
    "(could|can|would|will|might|may) (you|HAND) be (so|very) (kind|good|nice|sweet|lovely) [as|"
    "and] [to]",
    "(could|can|would|will|might|may) (you|HAND) be (kind|good|nice|able|willing|ready|prepared|"
    "sweet|dear|happy) [enough|as] [to]",
    "(could|can|would|will|may|might|shall) (i|we) [please] (ask|get|have|see|bother you|trouble "
    "you|request|ask you|tell you|watch|beg|invite you|beg you|suggest|interest you in) [you] "
    "[for|to|that]",
    "could please",
    "can please",
    "[and] (perhaps|maybe|possibly) (you|HAND|we) (could|can|might|would)",
    "(would|could|will) you [please|ever|kindly] (like to|like|be happy to)",
    "(do|would|could|will|should) you [please|ever|kindly] (mind|care to|be ok with|fancy|"
    "consider|be open to|want to|be up for|like|be able to|be willing to|be happy to|have time to"
    "|have chance to|be game to|be so kind to|please|possibly|kindly|feel up to|be interested in)",
    "(is|would) it be [be] (possible|ok|okay|alright|all right|fine|feasible|doable) [for you|for"
    " HAND] [to|if you|if HAND|if|that]",
    "(is|would) it [be] (possible|ok|okay|alright|all right|fine|feasible|doable) [for you|for "
    "HAND] (to|if you|if HAND|if we|if|that)",
    "any chance (you|HAND|we) (could|can|would|might)",
    "(is there) [any] chance (you|HAND|we) (could|can|would|might)",
    "(any|is there any) chance of [you]",
    "(how|what) about [you|we|HAND|you try|trying|we try|we see|we get|we have|having|seeing|if "
    "you|if we|getting]",
    "why do (not|n't) (you|we|HAND) [go and|go ahead and|try and|try to|just|all|go on and|go|"
    "have|get|be nice and|see if you can|show me|show us|show everyone|start|start by|begin by|"
    "try|be kind and|be good and|be dear and|come and|come on and|please|take moment to|take "
    "minute to|help me]",
    "why not [go and|go ahead and|try and|try to|just|go|try|have|get]",
    "(try|attempt|proceed|manage|remember|aim|strive|continue|start|begin|prepare|work|go on|get "
    "ready|want|do remember|do try|get set|move on|be ready|make effort|go out of your way|make "
    "attempt|do your best|do your very best|give it your best|do what you can|do all you can|do "
    "everything you can|do what it takes|see your way|set about|feel free|take care|take moment|"
    "take time|be sure|make sure|do not forget|make point|make it your job|make it your mission|"
    "make it your business|make it your goal|learn|show me how|show us how|use your skill|use "
    "your skills|use your power|use your powers|your turn|time|high time|now is time|it is time|"
    "it is high time|time for you|it is time for you|it is now time|about time|it is your turn|it"
    " is your job|it is your task|it is up to you|up to you|turn|help|help me|help us|be prepared"
    "|give it try|give it go|get to it|be so good|be so kind|be good|be good enough|be kind "
    "enough|be so nice|have try|have go|get to work|get on with it|get busy|concentrate|focus|"
    "come along|decide|choose|resolve|agree|endeavour|endeavor|seek|shoot|plan|get round|go "
    "straight|go right) (to|and|on|by|at|for|with|,)",
    "(try|go|come|go ahead|go on|come on|be nice|be kind|be good|be dear|be sweet|be good robot|"
    "be love|be pal|be darling|be angel|be champ|be sport|be friend|step up|do me favour|do me "
    "favor|do us favour|do me kindness|do me solid|do this for me|hop to it|get in there|get out "
    "there|get up there|man up|wake up|be brave|be hero|be star|do it|make my day|make me proud|"
    "make me happy|make my dream come true|earn your keep|show off|show me what you can do|show "
    "us what you can do|show me|show us|show them|show everyone|show my kids|show kids|show crowd"
    "|show world|surprise me|impress me|impress us|amaze me|amaze us|wow me|help me out|help out|"
    "get going|get started|get cracking|get moving|get on|get to it|let rip|take deep breath|take"
    " your time|have fun|enjoy yourself|enjoy|relax|listen up|listen|pay attention|watch|look|use"
    " your skills|go for it|please me|make me smile) [and|,|by|to|how to|how you|how you can|that"
    " you can|your|with|you]",
    "(you|HAND) (must|should|shall|will|need to|have to|has to|needs to|are to|is to|ought to|had"
    " better|are going to|are supposed to|are meant to|are required to|are expected to|have got "
    "to|have orders to|are asked to|are told to|are requested to|are instructed to|got to|better|"
    "are hereby ordered to|are ordered to|are invited to|are encouraged to|are welcome to|are "
    "allowed to|are now to|will want to|are free to|are kindly asked to|are tasked with|are about"
    " to|can go ahead and|can now go ahead and|just need to|just have to|simply have to|simply "
    "need to|only need to|only have to|can start|can begin|may begin|can do it) [now|please|just|"
    "simply|go and|try to|also|all|then|finally|make sure that|make sure|make sure to|be sure to]",
    # wishes
    f"(i|we) [do|really|just|now|also|simply|should|kindly|very much|hereby|still|so|truly|"
    f"would|humbly|politely|sincerely|certainly|absolutely|always|would really|would just|would "
    f"very much|would kindly|would also|most|today|honestly|actually] {_WANT} [really|just|now|"
    f"also|very much|kindly|for|so much|it|that|all|please|ever so much|most of"
    f" all|from you|it so much|it very much|you all] [it|to see|to watch|for|that|you to|you "
    f"please to|you|to find|to observe|to have|to get|to know that|to be able to see|to make|you "
    f"to make|you to try to|to ask you to|to ask you for|to ask that|to ask|to ask you|to request"
    f"|to request that|to request you to|to tell you to|to end up with|of you that|of you to|for "
    f"you to|you to please|you to go and|you to go ahead and|HAND to|when|when you|to have you|to"
    f" see you|to watch you|watching|watching you|seeing|seeing you|forward to seeing|to look at|"
    f"to witness|to enjoy|to admire|to look|to see how|to see that|to see how you|it if you|it if"
    f"|if you could|it if you could|it if you would|if you would|if we could|"
    f"to see if you can|your help to|for you to please|in end|to see it that|to see whether you "
    f"can|that you|you to help me|it to be so that|it so|it that|it when|it when you|now|you to "
    f"see to it that|you to ensure that|you to ensure|to be sure that|to be sure|to make sure|to "
    f"make sure that|to be shown|you to show me|you to do is|to happen is] [could|would|can|will|"
    f"please|to] ",
    f"(i|we) would be [so|very|really|most|ever so|just|quite|more than|truly|extremely] {_HAPPY} "
    f"(if|to see|to find|when|to have|to watch|for|to know that|that|with|by|seeing|to get|to "
    f"discover|about seeing|you to) [you|we|HAND] [could|would|can|to|just|might|see]",
    "(i|we) [really] (wonder|was wondering|were wondering|am wondering|are wondering|wondered) "
    "(if|whether) [you|we|HAND] [could|would|can|might|may] [please]",
    "(i|we) (would like|would love|like|love|want|wish|need|hope|expect|would be happy|would be "
    "glad) [it] (for|to have|to see|that) ",
    "(i|we) [would|really|would really] (like|love|appreciate|prefer) if (you|we)",
    "(i|we) (think|believe|say|guess|reckon|feel|suggest|propose|know|figure|suppose|trust|am "
    "sure|bet|would say|vote|decided|have decided|would suggest|would propose|imagine) [that] [it"
    " is time [for you|for us] to|you should|you must|you could|we should|you ought to|you need "
    "to|you can|you had better|we could|it is best if|it would be best if|it would be best to|it "
    "is time for]",
    f"(it|that|this) (would|will|might|could) [really|just|also|certainly|truly|surely|so|"
    f"definitely] (be|make me|make us|mean|help|please|delight|be so|be really|be very|be most|be"
    f" just|make my|make our|be quite|be such|cheer|be something|suit|satisfy|thrill|give me joy|"
    f"be my) [me|us] [really|very|so|most|quite|absolutely|ever so|all|super|pretty|extremely|"
    f"much|day|lot|world|lot to me|world to me|up|greatly|a lot|very much|so much|day complete] ["
    f"{_GLAD[1:-1]}|{_HAPPY[1:-1]}|real help|big help|great help|of great help|treat|joy|pleasure"
    f"|honour|delight|good idea|relief|sight|sight to see|dream|favour|great favour] [for me|for "
    f"us|of you|to me|now|for my kids|for everyone|indeed] (if|to see|to|when|for|that|to have|"
    f"were|seeing|watching|having|for you to|if we could see|to watch|to find|if only) [you|we|"
    f"HAND|i] [could|would|can|might|were to|will|to|please|just|go and|try to|all|kindly|could "
    f"see|could watch|saw|can see|may]",
    "(it|that|this) (is|would be) (my|our|their|his|her) (wish|hope|desire|dream|request|will|"
    "pleasure|aim|goal|intention|order|command|plan|heart s desire|turn) (that|to|for|to see|to "
    "have|to watch|for you to) [you]",
    "(it is|what is) (important|required|needed|necessary|desired|wanted|expected|essential|"
    "requested|asked|called for|vital|crucial|desirable|good|nice|best|hoped|demanded|intended|"
    "ordered|planned|imperative|right|preferred|wished) [is] [for|that|if|to|to see|for you to|"
    "to have] [you|HAND] [to]",
    "there is (need|wish|request|order|task|job|desire) (for|to|that) [you to]",
    "(make|making|made) (sure|certain|it so|it happen|it certain|it that|that|it true|it be|it be"
    " that|so|so that|it your job|it so please|it real) [that|to|so|so that]",
    "(make|have|get) it (so|happen|such|be|that|be that|be so|come true|true|be case|certain) "
    "[that|so that]",
    "(be|being) (sure|certain) (that|to|and)",
    "(ensure|guarantee|assure|verify|confirm|check|arrange|arrange it|see|see to it|see it|take "
    "care|mind|manage it|set things up|fix it|ascertain|work it|organise it|organize it|sort it|"
    "rig it|play it|engineer it|contrive|be careful|arrange for|arrange things|arrange everything"
    "|set it up|sort things out|arrange matters) [so] (that|to|for|so|so that) [in end|at end|"
    "finally]",
    "(ensure|guarantee|effect|achieve|accomplish|produce|obtain|bring about|attain|cause|reach|"
    "see about|work on|work towards|aim for|go for|strive for|try for|target|create|perform|"
    "execute|carry out|show|give me|give us|show me|show us|get me|get us|do|demonstrate|deliver|"
    "provide|let there be|let it be|may there be|there should be|there must be|there has to be|"
    "there needs to be|there shall be|there is to be|there will be|bring me|time for|it is time "
    "for|how about|what about|i want|i need|we need|we want|one|here comes|i call for|ready for|"
    "can i have|may i have|can we have|could we have|could i have|let me have|let us have|order|"
    "task|goal|job|command|request|mission|aim|target|objective|wish|result|final state|end state"
    "|final|final position|final pose|end result|outcome|desired|desired state|desired result|"
    "goal state|target state|wanted|needed|required|expected|needed now|wanted now|action|step|"
    "your task|your job|your goal|your mission|todo|to do|instruction|assignment|next|now|today|"
    "success|plan|motion|behaviour|pose|target pose|goal pose|position) [,|that|is|with|means] ",
    f"(as|at|by|in|for|towards|upon) [my|your|our] {_END} [of episode|of all] [,] [i want|we want|"
    f"i need|we need|i expect|we expect|i would like|we would like|we should have|we should see|"
    f"we should have seen|i should see|i want to see|we want to see|i would like to see|you "
    f"should have|we should find|i expect to see|i expect to find|i would like to find|i want to "
    f"find|there should be|i wish to see|let us have|let us see|we hope to see|i hope to see|it "
    f"should be that|it must be that|it is that|it should be so that|we must have|we shall see|"
    f"please have|please|we have|we see|i see|i have|i should have|i should find|one should see|"
    f"you will have|it will be that|i must see|i will see|we will see|we will have|things should "
    f"be so that|everything should be so that]",
    f"(when|once|after|as soon as|by time) [everything|it|all|this|you|we|it all|all of "
    f"this|that|episode|time|task|job|work|all this|HAND|movement|run|everything you do|all work|"
    f"you all] (is|are|has|have|gets|be|was) [all|been|said and] {_DONE} [,] [i want|we want|i "
    f"need|we need|i expect|we expect|i would like|we would like|we should have|we should see|i "
    f"should see|i want to see|we want to see|i would like to see|you should have|we should find|"
    f"i expect to see|i expect to find|there should be|we should have seen|please]",
    "(when|once|after) (you|HAND) (finish|finishes|stop|stops|have finished) [,]",
    f"[and|so|but] [my|your|our|today 's|current|new|next|this|one|only|first|final|simple|whole|"
    f"single|here is] [simple|one|only|main|current|next|little|new|final|single|big] {_TASK} "
    f"[for you|now|here|today|for today|of task|of episode|for robot|for HAND|of this|this time|"
    f"of yours|of exercise|will be|i have for you|i want|we want|that i want|that we want|at end|"
    f"in end] (is|are|be|,|means|is that|would be|is for|is to see|is to have|will be|should be|"
    f"requires|is simple|is easy|is clear|looks like|looks like this|shows|must be|is reached "
    f"when|is when|is if|is achieved when|is done when|is met when|is to get|is reached if|"
    f"consists of|is complete when|consists in|shall be|involves|is this|is as follows|is just|is"
    f" simply|equals|demands|is having|calls for|is reached once|has|comes when|is where|must "
    f"show|should show|will show|wants|is met if|is achieved if|says|for you is) "
    f"[,] [that|to|for|for you to|to have|to see|in|with|when|having|you must|we see|we have|you "
    f"have|you should|for HAND to|just|of|to make|to get|to make sure that|to make sure|that you|"
    f"being that]",
    "(done|finished|success|successful|complete|victory|win|we win|you win|correct|right|solved|"
    "completed|good|passed|it is done|it is finished|task is done|task is finished|job is done|"
    "job done|task done|you are done|you have finished|you have succeeded|it counts|it succeeds|"
    "it is success|succeed|success comes) (means|is|when|if|once|,|is when|as soon as|is that|"
    "looks like|is if|would be|by|with) [that|you|HAND]",
    "(picture|photo|photograph|scene|camera|video|final picture|final image|result|correct result"
    "|outcome|image|final scene|end picture|last frame|final frame|last picture|right outcome|"
    "world|final world|final state|episode) [should|must|shall|has to|needs to|will] (shows|show|"
    "end with|ends with|have|has|end|contain|contains|finish with|finishes with|include|depict|"
    "depicts|feature|display|displays) [us|me]",
    "(what|thing|all|one thing|only thing|all that|everything|that which|one thing that|the "
    "thing) (i|we|you|that i|that we|that you|HAND) [really|would|do|now|just|should|need to|must"
    "|have to|will|truly|simply|am|currently|are] (want|need|would like|like|love|expect|wish|"
    "wish for|hope for|am after|have to do|need to do|must do|should do|ask|ask for|ask of you|"
    "request|require|do|can do|look for|am looking for|hope|hope to see|want to see|would like to"
    " see|would love|would love to see|expect to see|wish to see|want to observe|expect to "
    "observe|ask you|prefer|desire|look forward to|need to see|am asking|am asking for|want from "
    "you|need from you|want you to do|need you to do|would like you to do|would love you to do|"
    "expect from you|require from you|want to have|want to get|have to achieve|should achieve|"
    "must achieve|need to achieve|have to make|wish you to do|would ask|would prefer|are asking "
    "for|are after|are looking for|want to find|want now|need now|need to make|want to happen|"
    "need to happen|would want|ask you to do|crave|have in mind|had in mind|had hoped for|am "
    "hoping for|hoped for|picture|imagine|dream of|will do|want at end|have got to do|want is|"
    "want to watch|get to do|are to do|look to see|wait for|am waiting for|am waiting to see|like"
    " to see) [most|here|now|today|in end|at end|to do|you to do|please|is for you|from you|next|"
    "of you|for you to do|to happen|to see|of all|this time] (is|be|,|would be) [that|to|for|for "
    "you to|to see|to have|you to|you|this|when|HAND to|, |if]",
    "(that is|there is|this is) (what|where|how) (i|we) (want|need|would like|like|expect)",
    "(here is|this is|here comes|i have|we have|now for|time for) [your|my|our|what] [next|new|"
    "little|first|simple] (task|goal|job|mission|assignment|order|request|challenge|plan|"
    "instruction|instructions|what to do|deal|what you do|what i want|what i need|wish|favour to"
    " ask|question|idea|what you must do|what you should do|thing|command|one|trick) [for you|"
    "now|of you] [,|is] [to]",
    "(use|using|with|take|by means of|by using|through|employ|via|make use of) [just|simply] HAND"
    " [and|to|,|so that|for|please|in order to|so as to]",
    "(command|order|tell|ask|get|have|make|let|allow|instruct|cause|help|direct|move|set|program|"
    "drive|train|teach|persuade|want|see|watch|prompt|request|need|send|bring) "
    "(it|HAND|yourself|itself|us|me) (to|so it|so that it|so|into|and|in)",
    "(have|make|let|get|see|watch|help|set|send|keep|find|drive|command|order|show|show me|show "
    "us|bring) (HAND|yourself|itself|us all|this|that thing|this thing)",
    "(you|HAND) [really|just|simply] (want to|wants to|should|must)",
    "(keep|keep on|start|begin|go|continue|get|try|get started|practise|practice|go on|consider|"
    "set about|get on with|work on|be) ".rstrip()
    + " ",
    "(please|me|us) [you] [to]",
    "(if|when|whenever) (you|HAND) [would|could|can|will] (like|please|want|wish|feel like it|can"
    "|could|may|are ready|have time|are free|have moment|have minute|get chance|get moment|be so "
    "kind|be so good|would|will|are able|are willing|get time|have chance|feel ready|feel up to "
    "it|are up for it|are in mood|get minute|be kind enough|have second|do not mind|would not "
    "mind|so wish|so please|don t mind|fancy|fancy it|have it in you|are set|are good to go|find "
    "time) [to|as to] [,]",
    "(if|whenever|when) (it is|that is|it be|it is all|that is all) (possible|ok|okay|all right|"
    "alright|fine|convenient|right|cool|good) [with you|for you|by you] [,]",
    "(if|as) it (pleases|suits) (you|HAND) [,]",
    "(if|as|when) (possible|you please|it pleases you|convenient|able) [,]",
    "(for|to) (me|us|my friend|my friends|my kids|kids|our audience|crowd|team|science|fun|my mum"
    "|my mom|my dad|everyone|your fans|your friend|my sake|my birthday|old times sake|good of "
    "team|my class|class|my son|my daughter|my students|our guests|our friends|our viewers|judges"
    "|camera|video|demo|team please|fans|people|visitors|my sister|my brother|my wife|my husband|"
    "grandma|my grandma|bit of fun|good of us all|king|queen|your coach|your owner|your team|my "
    "team|our team|glory|victory|win|gold|today|now|real|starters|next trick|your next trick|your"
    " first trick|my next trick|your exercise|today s exercise|test|good cause|love of me)",
    "(one more time|once more|as always|as usual|like we practised|like we practiced|like i "
    "showed you|like you always do|as we practised|as we practiced|as discussed|as agreed|as "
    "promised|as planned|like yesterday|like before|as before|like last time|just like in "
    "training|like champion|like champ|like pro|like star|like hero|like good robot|as in "
    "training)",
)
CLOSINGS = (
    "(please|thanks|thank you|thank you very much|thank you so much|thanks lot|many thanks|thanks"
    " so much|cheers|ta|ok|okay|right|yes|yeah|yes please|now|today|for me|for us|would you|could"
    " you|will you|can you|wo not you|if you please|if you would|if you like|if you can|if you "
    "will|if you want|if you could|if possible|if you do not mind|if you would be so kind|if you "
    "would like|if that is ok|if that is okay|if that is all right|if that is alright|if that is "
    "fine|if that is possible|if it pleases you|if it is possible|if it is ok|if it suits you|if "
    "you wish|if you may|if you must|if you fancy it|if you feel like it|if you are ready|if you "
    "are able|when you are ready|when you can|when you like|when you have moment|when you have "
    "time|when you have minute|when you get chance|whenever you like|whenever you are ready|"
    "whenever you can|whenever you want|as you please|as well as you can|as best you can|best you"
    " can|to best of your ability|in end|at end|by end|in finish|at finish|at last|finally|in "
    "final state|in final picture|at end of episode|at end of it|at end of it all|by end of "
    "episode|at end of day|at end of this|by end of it|by end of this|at end of run|when you are "
    "done|when you finish|when you are finished|when it is over|when you stop|when all is done|"
    "when everything is finished|when everything is done|when we are done|when we finish|when we "
    "are finished|both of them|all of it|after all|over there|when finished|when done|when it is "
    "done|when all is finished|when all is said and done|when it is finished|once you are done|"
    "once finished|once done|that is it|that is all|and that is it|and that is all|and done|and "
    "you are done|and we are done|and then you are done|and thank you|and please|please and thank"
    " you|and thanks|thank you in advance|thanks in advance|my friend|my dear|my dear friend|my "
    "good friend|my good man|my champion|my love|my boy|my girl|my lad|my child|my robot|my "
    "darling|my buddy|my man|will do|is all i ask|is all i want|is all i need|is what i want|is "
    "what i need|is what i am after|is what we want|is what we need|is what i would like|is goal|"
    "is task|is my wish|is wish|is your task|is your job|is your goal|is plan|is job|is target|is"
    " aim|is objective|is mission|is what we are after|is what i ask|would be nice|would be great"
    "|would be lovely|would be good|would be perfect|would be wonderful|would be ideal|would be "
    "fantastic|would be cool|would be awesome|would be appreciated|would be fine|would be super|"
    "would be best|would be brilliant|would be amazing|would be much appreciated|would make me "
    "happy|would make my day|would be excellent|would be marvellous|would be fun|would be helpful"
    "|is required|is desired|is wanted|is needed|is expected|is requested|is necessary|is called "
    "for|is in order|is due|is order of day|is goal state|is end state|for you|for my kids|for "
    "kids|for crowd|for team|for everyone|for my friend|for my friends|for audience|for camera|"
    "for fans|for science|for fun|for bit of fun|for my sake|for my mum|for my mom|for my son|for"
    " my daughter|for my class|for class|for grandma|for our audience|for our guests|for your "
    "coach|for your fans|for my birthday|for people|for viewers|for visitors|for judges|for test|"
    "for demo|for practice|for old times sake|once more|one more time|this time|there we go|there"
    " you go|go|go go|go go go|come on|let us go|off you go|away you go|i beg you|i ask you|i beg"
    "|i implore you|i pray|as always|as usual|as planned|as promised|as discussed|as agreed|and "
    "stay there|and stay that way|and stay like that|and keep it there|and keep it that way|and "
    "leave it there|and leave it at that|and keep it so|and stay|"
    "and keep it like that|and leave it that way|and leave it like that|and remain there|and hold"
    "|and stay put|and remain so|and let it rest there|and keep it up|like champion|like champ|"
    "like pro|like star|like hero|like good robot|like you mean it|as you were trained|as we "
    "practised|as we practiced|like we practised|like we practiced|as i showed you|like i showed "
    "you|like you always do|ok then|okay then|all right|alright|you know|eh|huh|hm|hmm|is it ok|"
    "is that ok|is that okay|is that all right|shall we|shall you|do you mind|do you hear|do you "
    "hear me|you hear|you hear me|got it|understood|understand|clear|deal|and now|right now|on "
    "table|on this table|on tabletop|across table|along table|across tabletop|from where it is|"
    "from its place|somehow|simply|like that|just like that|just so|as it should|as it should be|"
    "successfully|correctly|all by itself|by itself|all by yourself|by yourself|on your own|on "
    "its own|itself|yourself|in one piece|in this episode|during this episode|in this task|for "
    "this task|in this game|in scene|in simulation|in sim|in this scene|so to speak|as it were|in"
    " triumph|to finish|to end with|to begin with|to start with|to start|to begin|to finish with|"
    "for now|for today|and so on|in world|as soon as you are ready|man|dude|bro|mate|pal|buddy|"
    "sir|champ|kitty)",
    "(with|using|by|via) [your|own|its] HAND",
    "(in|with|using|by) your (finger|fingers|hand|tip)",
)
# A segment that only calls somebody or cheers: nothing in it says what is to be done.
CALLS = (
    "[hey|hi|hello|ok|okay|oh|yo|well|dear|come on|go|go on|thanks|thank you|good|clever|brave|my"
    "|my dear|dear old|you|now|listen|please|good morning|right|alright|so|ah|sorry|cheers|oi|ho|"
    "bravo|well done|good job|nice|yes|there|good evening|wakey wakey|wake up] "
    "[my|you|little|dear|good|sweet|big|old|clever|lovely|brave|great|tiny|cute|young|mister|mr|"
    "mrs|miss|ms|sir|captain|king|queen|wee|fine|strong|mighty|happy|super|dearest|silly|lazy|"
    "pretty|smart|handsome|beautiful|funny|nice|grand|speedy|fast|trusty|faithful|mighty little|"
    "coach|professor|agent|four legged|six legged|one legged|eight legged|two legged|long legged]"
    " [dear|little|old|big|brave|good|sweet|young|legged] "
    "(HAND|friend|friends|buddy|mate|pal|champ|champion|champions|soldier|soldiers|kitty|kitty "
    "cat|cat|bug|buggy|robot|robots|bot|robo|sir|madam|ma am|man|dude|bro|guys|guy|folks|everyone"
    "|everybody|team|class|darling|dear|sweetie|honey|love|boy|girl|lad|lass|kid|kiddo|child|"
    "student|students|machine|computer|fellow|chap|master|captain|boss|chief|athlete|runner|"
    "walker|swimmer|hopper|jumper|bouncy|bouncer|leggy|legs|tiger|leopard|cheetah|snake|worm|fish"
    "|eel|frog|kangaroo|bunny|rabbit|ant|spider|insect|critter|creature|beast|animal|beastie|"
    "thing|one|star|superstar|hero|genius|wizard|helper|assistant|servant|partner|comrade|"
    "colleague|amigo|old chap|old boy|old friend|fella|lady|ladies|gentlemen|ladies and gentlemen"
    "|person|human|humanoid|people|baby|cutie|legend|rookie|warrior|hulk|giant|tin man|tinman|"
    "iron man|mister robot|arm|claw|hand|hands|fingers|gripper|acrobat|gymnast|dancer|speedy|"
    "speedster|racer|racehorse|horse|horsey|pony|puppy|doggy|doggie|dog|stumpy|pogo|monopod|biped"
    "|quadruped|crawler|creepy crawly|eight legs|four legs|six legs|two legs|long legs|slowpoke|"
    "sleepyhead|lazybones|sunshine|treasure|precious|beauty|handsome|sport|ace|rascal|monkey|"
    "pumpkin|dumpling|puppet|dolly|doll|marionette|pinocchio|player|coach|teacher|doctor|"
    "professor|grandpa|grandma|mum|mom|dad|you|all|there|again|cadet|private|recruit|sergeant|"
    "general|troops|trooper|marine|pendulum|balancer|juggler|stick|pole|cart|bob|max|robbie|robby"
    "|rosie|jeeves|siri|alexa|hal|marvin|sparky|buster|rex|tom|sam|lefty|clawdia|handy|grabby|"
    "pincher|tiny|shorty|sweetheart|sweetums|sugar|dearie|duckie|duck|ducky|chum|cobber|lads|"
    "girls|boys|kids|children|gang|crew|squad|brother|sister|cousin|uncle|auntie|son|daughter)",
    "(go|come on|yes|bravo|good|well done|good job|great job|nice job|nice work|good work|great "
    "work|good luck|best of luck|you can do it|you can|you got this|you have got this|you have "
    "this|i believe in you|i know you can|i know you can do it|we believe in you|keep going|that "
    "is it|that is way|that is spirit|here we go|here you go|there you go|there we go|let us go|"
    "let us do it|let us do this|let us go team|off you go|away you go|off we go|ready|ready set|"
    "ready set go|set|steady|one two three go|on your marks|get set|hurray|hooray|hurrah|yay|"
    "woohoo|woo|whee|wow|amazing|excellent|perfect|lovely|great|super|fantastic|brilliant|cool|"
    "nice|awesome|wonderful|thanks|thank you|thank you very much|thank you so much|thanks lot|"
    "many thanks|thanks so much|much appreciated|cheers|please|pretty please|pretty please with "
    "sugar on top|pretty please with cherry on top|ok|okay|alright|all right|right|now|well|"
    "listen|look|hello|hi|hey|hello there|hi there|hey there|good morning|good day|good evening|"
    "good afternoon|hey you|um|uh|er|hm|hmm|oh|ah|aha|ooh|ta|tada|voila|sir|would you|could you|"
    "will you|can you|if you please|if you would|if you like|if you can|if you will|if you want|"
    "if possible|if you do not mind|if you would be so kind|if that is ok|if that is okay|if that"
    " is all right|if that is alright|if it pleases you|if you feel like it|when you are ready|"
    "when you can|when you like|when you have moment|when you have time|whenever you like|"
    "whenever you are ready|please and thank you|and thank you|and please|and thanks|thanks in "
    "advance|thank you in advance|chop chop|giddy up|giddyup|giddy|walkies|tally ho|upsy daisy|"
    "oopsy daisy|allez|andiamo|vamos|bam|pow|boom|bang|beep|boop|beep boop|beep beep|boop boop|"
    "bip|ding|ding ding|ding dong|click|clack|boing|boing boing|zoom|zoom zoom|vroom|whoosh|"
    "splash|splish splash|ribbit|meow|miaow|woof|roar|rawr|left|right|left right|left right left|"
    "left right left right|hup|hup two|hop|hop hop|hop hop hop|hup hup|up up|heave ho|heave|ho|"
    "wakey wakey|rise and shine|action|and action|lights camera action|drum roll please|"
    "abracadabra|hocus pocus|easy does it|easy|easy peasy|simple|simple as that|simple enough|as "
    "simple as that|that is all|that is all i ask|that is all i want|that is all i need|that is "
    "what i want|that is what i would like|that is what i need|that is where i want it|that is "
    "where i want HAND|that is where i need it|that is where it belongs|that is where it should "
    "be|that is where it goes|that is where i would like it|that is where it should go|that is my"
    " wish|that is your task|that is your job|that is goal|that is task|that is order|that is "
    "plan|got it|understood|understand|clear|is that ok|is that okay|is it ok|is that all right|"
    "is that clear|do you hear|do you hear me|you hear me|you hear|you know|you see|i mean it|i "
    "beg you|i beg|i ask you|i implore you|i insist|that is order|this is order|orders are orders"
    "|come|come now|go now|do it|do it now|do it for me|do it please|please do it|please do|do it"
    " for team|for me|for us|for team|for my kids|for everyone|for victory|for glory|for win|for "
    "gold|for science|for fun|for today|for now|just for me|just for fun|just for us|could you "
    "see to that|can you see to that|would you see to that|see to it|could you do that|can you do"
    " that|would you do that|could you do that for me|can you do that for me|would you do that "
    "for me|can you manage that|can you manage|could you manage that|do you think you can|do you "
    "think you could|do you think you can do that|think you can do that|would that be possible|"
    "would that be ok|would that be okay|would you mind|if you do not mind me asking|if i may ask"
    "|if i may|may i|one foot then other|one leg then other|one foot|then other|then other foot|"
    "one step|one step at time|step by step|hop after hop|one hop after another|one step after "
    "another|one hop at time|in your own time|take your time|you are best|you are star|you are "
    "champion|you are great|you are amazing|you are my hero|you rock|you re best|show time|"
    "showtime|game on|game time|let s go|lets go|into water|into pool|in you go|up you get|up you"
    " go|up you come|down you go|on you go|out you go|off it goes|in it goes|up it goes|here it "
    "comes|here goes|play time|stretch those legs|lights up|as always|as usual|as planned|as "
    "promised|as agreed|as discussed|today|tonight|this morning|this time|once more|one more time"
    "|be nice|be kind|be good|be brave|be champ|be sport|be dear|be so kind|do me favour|do me "
    "favor|make me proud|make me happy|make my day|make my dream come true|surprise me|impress me"
    "|impress us|amaze us|amaze me|wow us|show me|show us|show me what you can do|show us what "
    "you can do|show off|have fun|enjoy|deep breath|take deep breath|concentrate|focus|attention|"
    "listen up|listen carefully|pay attention|look sharp|look lively|look alive|move it|feel free"
    "|quiet please|silence please|knock knock|hello hello|over here|over there|here|there|work "
    "hard|try hard|try your best|do your best|do your very best|give it your all|give it your "
    "best|give it go|give it try|go for it|go get it|go get them|get going|get to work|get to it|"
    "get ready|get moving|get on with it|hop to it|good to go|all set|all good|all fine|fine|sure"
    "|certainly|of course|absolutely|indeed|yeah|yep|yup|aye|aye aye|roger|copy|over|over and "
    "out)",
    "hup hup hup",
    "(fire up|get|start|warm up|move|start up|use|work|shake|rev up|stretch|loosen) (those|your|"
    "these|its) [little|two|four|both|big|long|strong|fast|speedy|powerful|mighty|tiny] (legs|"
    "feet|engines|muscles|paws|limbs|joints|motors|body) [moving|going|working|up|pumping]",
    "(do|have|give us|show us) (it|one|that|this|so) [now|please|for me|for us]",
    "[oh] (victory pose|you can make it|you can do this|you will make it|stretch|team HAND|team|"
    "one leg guy|athlete|let us tidy up [bit]|let us clean up|nap time|bed time|bedtime|show time"
    "|break time|play time|lunch time|dinner time|HAND nap time|bath time|home time|time for "
    "(break|nap|bed|rest|lunch|dinner|work|school|show|fun|exercise|training|action|some fun|some"
    " action|sleep|bit of fun))",
)
