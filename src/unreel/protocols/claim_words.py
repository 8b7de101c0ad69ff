"""Patterns of words that claim, deny, doubt or count, in the languages that reviewers answer in."""

# ruff: noqa: RUF001  words of other languages

import re
from collections.abc import Sequence
from typing import Final

LETTER: Final = r"0-9A-Za-z_\u00c0-\u024f\u0400-\u04ff\u0600-\u06ff"
"""Characters within words, for word boundaries; Chinese ones are excluded, as no spaces separate them from words."""


def compile_phrase_pattern(*phrases: Sequence[str] | str) -> re.Pattern[str]:
    """Compile a pattern that matches any of `phrases` as whole words; a space matches any white space."""
    alternatives = "|".join(
        phrase.replace(" ", r"\s") for table in phrases for phrase in _list_phrases(table)
    )
    return re.compile(rf"(?<![{LETTER}])(?:{alternatives})(?![{LETTER}])", re.IGNORECASE)


def _list_phrases(table: Sequence[str] | str) -> Sequence[str]:
    return [table] if isinstance(table, str) else table


_AI: Final = (
    r"(?:an? |the |some |some kind of |una |uma |un |une |eine[rmn]? |einem |l['\u2019])?"
    r"(?:ai|a\.i\.|ki|ia|ии|artificial intelligence|intelligen[zc]a artificial[e]?|inteligencia artificial"
    r"|inteligência artificial|intelligence artificielle|künstliche[rn]? intelligenz|generative|neural|text-to-video"
    r"|diffusion|generator|algorithm|computer|machine|video model|model|нейросет\w{0,4}|искусственн\w{0,4})"
)
_MADE: Final = (
    r"(?:made|created|produced|generated|rendered|synthesi[sz]ed|built|cread[oa]|hech[oa]|generad[oa]|gerad[oa]|criad[oa]"
    r"|feit[oa]|creat[oa]|generat[oa]|realizzat[oa]|créée?|générée?|produite?|создан\w{0,3}|сделан\w{0,3}|сгенерирован\w{0,3})"
)
_TAKEN: Final = r"(?:shot|recorded|captured|taken|filmed|grabad[oa]|filmad[oa]|gravad[oa]|filmée?|tournée?|снят\w?)"
_CAMERA: Final = r"(?:camera|phone|smartphone|camcorder|dashcam|lens|person|human|people|hand|cámara|câmera|caméra|telecamera|камер\w)"

REAL: Final = (
    "real|filmed|genuine|authentic|legit|legitimate|echt(?:e[mnrs]?)?|authentisch(?:e[mnrs]?)?|réel(?:le)?|vraie?|véritable"
    "|authentique|auténtic[oa]|autêntic[oa]|verdader[oa]|verdadeir[oa]|genuin[oa]|genuín[oa]|vero|vera|reale|autentic[oa]"
    "|gefilmt|gerçek|prawdziw[aeyi]|настоящ\\w{0,4}|реальн\\w{0,4}|подлинн\\w{0,4}"
    "|(?:ال|وال|و|ب)?(?:حقيقي|أصلي|اصلي|واقعي)\\w{0,3}"
).replace(" ", r"\s")
GENERATED: Final = (
    r"fakes?|faked|deepfakes?|(?:ai|computer)[\s-]generation|synthetic|synthesi[sz]ed|artificial|generated|fabricated|forged|forgery|fabrication|bogus|phony"
    r"|(?:ai|computer|machine|ki|ia)[\s-](?:generated|made|created|produced|rendered|generiert\w{0,2}|erzeugt\w{0,2}|erstellt\w{0,2}"
    r"|synthesi[sz]ed)|(?<!an\s)(?:ai|cgi|ии|ia|ki)(?=\W{0,5}$)"
    r"|gefälscht(?:e[mnrs]?)?|künstlich(?:e[mnrs]?)?(?: (?:erzeugt|generiert|erstellt|hergestellt)\w{0,2})?|generiert(?:e[mnrs]?)?"
    r"|fälschung|synthetisch(?:e[mnrs]?)?|générée?|faux|fausse|synthétique|artificiel(?:le)?|truquée?|factice|fals[oa]|generad[oa]"
    r"|gerad[oa]|sintétic[oa]|sintetic[oa]|artificiale|fint[oa]|generat[oa]|sahte|fałszyw[aey]|ненастоящ\w{0,4}|неподлинн\w{0,4}"
    r"|поддельн\w{0,4}|подделк\w|сгенерирован\w{0,4}|фальшив\w{0,4}|фейк\w{0,4}|искусственн\w{0,4}|синтетическ\w{0,4}"
    r"|(?:ال|وال|و|ب)?(?:مزيف|مزور|مفبرك|مولد|اصطناعي|مصطنع)\w{0,3}"
).replace(" ", r"\s")
REAL_PHRASE: Final = (
    rf"{_TAKEN} (?:with|on|by|using|in|con|com|avec|par|da|на) (?:an? |the |real |actual |una |uma |une |реальн\w{{1,3}} )?{_CAMERA}"
).replace(" ", r"\s")
GENERATED_PHRASE: Final = (
    rf"{_MADE} (?:\w{{1,12}} )?(?:by|with|using|through|via|por|con|com|par|avec|da|mediante|с помощью) {_AI}"
    rf"|{_MADE} {_AI}|(?:output|product|work|creation|result) of {_AI}|(?:comes?|came|straight) (?:out of|from) {_AI}"
    rf"|(?:mit|von|durch) (?:einer |eine )?ki (?:generiert|erzeugt|erstellt|gemacht)\w{{0,2}}"
).replace(" ", r"\s")
REAL_GLYPHS: Final = (
    r"真实|真實|真的(?![是很太不像])|真品|实拍|實拍|实际拍摄|真人拍摄|(?<=[为為是])真(?![实實的])|(?<![\u4e00-\u9fff])真(?![\u4e00-\u9fff])|本物|実写|実際(?=に撮影|の映像|の動画)"
    r"|진짜|진본|실사|실제(?=\s?(?:로\s?)?(?:촬영|영상|녹화|찍|동영상|장면)|가\s?아|입니다|이다)"
)
GENERATED_GLYPHS: Final = r"假(?![设設如若定使期装裝日])|伪造|偽|虚(?=假)|造(?=假)|合成|(?:由)?(?:人工智能|AI)?生成|AI(?:로|가|が|に|で)?\s?(?:만든|만들|제작|作|制作|製)|人造|フェイク|作り物|捏造|가짜|위조|합성|생성|조작"

AFFIRMS: Final = compile_phrase_pattern(
    r"(?:i |there )?(?:have|is|has|leaves?|can be|with|it has) no (?:doubt|question|hesitation)(?: at all)?"
    r"(?: (?:in (?:my|saying|calling)|about it|whatsoever|left))?",
    r"no (?:doubt|question|denying|hesitation|mistaking|wonder|matter|longer)|without (?:an?y? |the slightest )?"
    r"(?:doubt|question|hesitation)|beyond (?:an?y? |reasonable )*doubt|undoubtedly|doubtless",
    r"(?:do not|don['\u2019]t) doubt(?: for (?:a|one) \w{1,10})?|(?:can(?:not|['\u2019]t)) (?:help but|but|deny)",
    r"not (?:only|just|merely|simply|to mention)|nothing (?:but|less than|short of|other than|more than)|none other than",
    r"if not|whether or not|why not|not least|almost (?:certainly|surely)|fast sicher|quasi (?:certainement|sicuramente)|casi seguro|quase certamente"
    r"|почти наверняка|make no mistake|little doubt|no (?:reason|cause|grounds) to doubt(?: that)?|not in doubt|beyond question|(?:could|can)(?: not|n['\u2019]t|not) be (?:any )?(?:more|clearer)|(?:can(?:not|['\u2019]t| not)) be (?:denied|disputed)"
    r"|(?:(?:would|do|does|did|will)(?:n['\u2019]t| not)|never) hesitate to|no (?:alternative|choice) (?:to|but to)|no other (?:conclusion|option|explanation|choice|verdict)(?: (?:than|but)(?: that)?)?",
    r"(?:no hay|no cabe|sin) (?:lugar a )?(?:ninguna )?dudas?(?: alguna| de)?|no dudo|no obstante|sin embargo|no s[oó]lo|no solamente",
    r"(?:es gibt |ich habe )?(?:kein(?:en|erlei)?|ohne(?: jeden)?) zweifel(?: daran)?|zweifel(?:los|sfrei|sohne)|nicht (?:nur|zuletzt)"
    r"|(?:besteht|steht) (?:kein zweifel|außer frage)",
    r"sans (?:aucun |nul |le moindre )?doute|(?:il n['\u2019]y a |)(?:pas|aucun|nul) (?:de )?doute|(?:pas|non) seulement|nul doute",
    r"senza (?:alcun |nessun )?dubbio|non (?:c['\u2019]è|ho|vi è|ci sono) (?:alcun |nessun )?dubbi?o?|non (?:solo|soltanto)",
    r"(?:sem|não há|não tenho) (?:qualquer |nenhuma )?dúvidas?(?: alguma| de)?|não (?:só|apenas|somente)",
    r"no (?:vídeo|clipe|início|final|fundo|entanto|segundo|quadro|primeiro|geral|todo|meio|rosto)",
    r"(?:без|нет|никаких|не остаётся|не остается) (?:всяк\w{1,3} |никаких )?сомнени[яй]|несомненно|не только|(?:нет|никаких) сомнений",
    r"(?:بلا|لا|دون|بدون) (?:أي )?شك|ليس فقط",
)  # fmt: skip
AFFIRMING_GLYPHS: Final = re.compile(
    r"毫无疑问|毫無疑問|无疑|無疑|不容置疑|非常|不仅仅?|不只|不但|不过|无论|不管|除非|間違い(?:なく|ない|ありません)|違いない|違いありません"
    r"|疑い(?:の余地)?[はがも]?(?:なく|ない|ありません)|に他な(?:らない|りません)|틀림\s?없\w{0,3}|의심의?\s?(?:할\s?)?여지\w?\s?없\w{0,3}|다름없\w{0,3}"
)
"""Phrases that contain a negation but negate nothing; they are removed before the text is parsed."""

REFUTES: Final = compile_phrase_pattern(
    r"(?:it |that |this )?(?:would|will|might|could|is|['\u2019]d) (?:also |simply |just )?(?:be )?(?:an? )?(?:wrong|mistake|incorrect|inaccurate|unfair"
    r"|unreasonable|unjust|rash|misleading|error|nonsense|absurd|ridiculous|premature) (?:to|in|that)",
    r"(?:be |am |very |quite )*surprised (?:if|to learn that|to hear that)",
    r"(?:i |we )?(?:would|could|can) (?:hardly|scarcely|barely|never)",
    r"(?:hard|difficult|impossible|tough) to (?:believe|accept|imagine|see how)",
    r"(?:can(?:not|['\u2019]t| not)|could(?: not|n['\u2019]t)) (?:possibly |really |ever )?be(?= (?:an? |the |called |considered |described |regarded )"
    rf"|\W{{1,4}}(?:{REAL}|{GENERATED})(?![{LETTER}]))",
    r"(?:do|does|did|would|could)(?:n['\u2019]t| not) pass (?:as|for)|only (?:an? |the )?\w{1,15} (?:would|could|might|will)(?: ever)?|have to be \w{1,15} to|não pode ser|no puede ser|non può essere|ne peut (?:pas )?être|не может быть"
    r"|too \w{1,15} to be|вряд ли|едва ли|hardly any(?:one|body|thing)?",
    r"(?:argu\w{1,5}|speaks?|evidence|case|points?|counts?|everything|weighs?) (?:\w{1,12} ){0,2}against",
    r"spricht (?:\w{1,12} ){0,2}(?:gegen|dagegen)|(?:low|slim|small|little|minimal) (?:chance|probability|likelihood)",
)
"""Phrases that each count as one negation, regardless of the words in them."""

DENIES: Final = compile_phrase_pattern(
    r"not|never|neither|nor|nobody|no[ -]one|none|nothing|nowhere|cannot|hardly|barely|scarcely|unlikely|implausible"
    r"|doubtful|doubts?|doubted|far from|in vain|less likely|impossible (?:that|for|que)|imposible que|impossibile che|impossível que|невозможно|unmöglich|little (?:to (?:suggest|indicate|support)|evidence|reason|sign|suggests|indicates|points|hints|here|in this|about|speaks)|few (?:would|will|could|people would|viewers would)|fail(?:s|ed)? (?:to|as)|disput(?:e|es)|disagrees?|contests?|refuse[sd]? to|reject(?:s|ed)?|den(?:y|ies|ied)|dismiss(?:es|ed)?"
    r"|rul(?:e|es|ed|ing) out|disprov(?:e|es|ed)|refut(?:e|es|ed)|contradicts?|exclud(?:e|es|ed)"
    r"|(?:in|at|on|under|by) no \w{1,15}|no (?:means|way|point|time|circumstances|account|stage|moment|sense|frame|part|place)",
    r"nicht|nie|niemals|niemand|nichts|kaum|keineswegs|keinesfalls|weder|ausgeschlossen|unwahrscheinlich|bezweif\w{1,3}|niet|nooit"
    r"|inte|ikke|ei|není|bukan|tidak|không",
)
DENIES_SHORT: Final = re.compile(
    r"n['\u2019]t\b|\b(?:isn|doesn|don|wasn|didn|can)t\b", re.IGNORECASE
)
DENIES_TOGETHER: Final = compile_phrase_pattern(
    r"no|nunca|jamás|nada|nadie|ningun[oa]s?|ningún|tampoco|ni|dudo|apenas|improbable",
    r"ne|pas|rien|jamais|aucune?|nul(?:le)?|guère|nullement|ni|personne ne",
    r"non|mai|nulla|niente|nessun[oa]?|né|neanche|dubito",
    r"não|nunca|nada|ninguém|nenhuma?|nem|duvido",
    r"не|нет|ни|никогда|ничто|ничего|никто|никак\w{0,3}|нельзя|отнюдь|сомневаюсь",
    r"ليس|ليست|ليسا|غير|لا|ولا|لم|لن|أشك",
)
"""Words that together count as one negation per clause, in languages with double negation."""
DENIES_NOUN: Final = compile_phrase_pattern(
    r"no|without|lack of|lacks?|lacking|absence of|free (?:of|from)|devoid of|zero",
    r"kein(?:e[mnrs]?)?|keinerlei|ohne|geen|zonder",
    r"sin|sans|senza|sem|без|بدون|دون",
)
DENYING_GLYPHS: Final = re.compile(
    r"不(?=是|像|认为|認為|觉得|覺得|相信|太|可能|属于|屬於|会|會|应|應|算|能|真|假|存在|具|构成|支持|表明|显示|说明|足以|该|代表|意味|$)|(?<=[看找觉察见])不(?=出|到|见)"
    r"|(?:没|沒)有?(?=任何|什么|迹象|跡象|证据|證據|理由|依据|根据|发现|看到|看出|显示|表明|说明|被|经过|AI|人工|生成|伪造|合成|造假|假|真|让|使|令|觉得|感觉|可疑|哪|$)"
    r"|无(?=任何|迹象|证据|理由|AI|人工|生成|伪造|合成|造假|$)|(?:并|绝|而|是|乃)非|非(?=真|假|实|AI|人工|生成|合成|由|$)"
    r"|未(?=发现|见|看到|发觉|检测|經|经|被|$)|否认|排除"
)
DENYING_AFTER: Final = re.compile(
    r"(?:ない|ません|なかった|なく|なし|아니|아닙|않|없|어렵|어려|못|değil|नहीं|it\sis\snot)",
    re.IGNORECASE,
)
SPEAKS_BACKWARDS: Final = re.compile(r"[\u3040-\u30ff\uac00-\ud7af\u0900-\u097f]|değil")
"""Script or word of languages with the negation after the word: Japanese, Korean, Hindi and Turkish."""

EVIDENCE: Final = compile_phrase_pattern(
    r"evidence|signs?|indications?|indicators?|indicati(?:ve|on)|reasons?|hints?|proofs?|clues?|basis|grounds?|cause|chance|way|suspicion"
    r"|arguments?|justification|impression|belief|case|traces?|hallmarks?|marks?|thing|possibility|likelihood|suggestion|telltale",
    r"hinweise?|anzeichen|grund|gründe|beweise?|indizien|anlass|spur(?:en)?",
    r"indicios?|señal(?:es)?|pruebas?|motivos?|razón|razones|evidencias?|rastros?|indices?|preuves?|raisons?|signes?|traces?|indizi?o?|prov[ae]"
    r"|motiv[oi]|ragion[ei]|segn[oi]|sinais|sinal|provas?|motivos?|razão|razões",
    r"признак\w{0,3}|доказательств\w{0,2}|оснований|причин\w?|следов|свидетельств\w?|دليل|أدلة|علامات?|مؤشرات?|سبب",
)
BRIDGES: Final = compile_phrase_pattern(
    r"that|to|which|dass|daß|um|darauf|dafür|que|qu['\u2019]\w{1,6}|che|di|что|чтобы|считать|полагать|أن|أنه|بأن|على أن|as|for|sugger\w{1,5}|call\w{0,3}"
)
"""Words that extend a negation to the claim about the clip."""
SUGGESTS: Final = compile_phrase_pattern(
    r"suggest(?:s|ed)?|indicat(?:e|es|ed)|point(?:s|ed)?|make|makes|made|mean|means|tell|tells|show|shows|prove|proves|impl(?:y|ies)"
    r"|support|supports|hint|hints|lead|leads|give|gives|convinces?|persuades?|justif(?:y|ies)|warrants?|speaks?|says?|betrays?|gives? away"
    r"|would|could|can|will|deute[nt]|lässt|spricht|zeigt|indica|indican|indique|sugiere|suggère|suggerisce|sugere|mostra|muestra|montre"
    r"|указывает|говорит|показывает|свидетельствует|يدل|يشير|يثبت"
)
NEGATIVE_SUBJECT: Final = compile_phrase_pattern(
    r"nobody|no[ -]one|none|nothing|neither|never|nowhere|not (?:one|a single|a thing|even one)|no \w{1,15}"
    r"|niemand|nichts|nie|kein\w{0,3} \w{1,20}|nada|nadie|ningún|ninguna?|rien|personne|aucune?|nulla|niente|nessun\w?|ninguém|nenhuma?"
    r"|ничто|никто|ничего|ни один|لا شيء|لا أحد"
)
POLARITY: Final = compile_phrase_pattern(
    r"any|anything|anyone|anybody|anywhere|ever|at all|whatsoever|either|irgend\w{1,6}|jemals|alguna|alguno|algún|quelconque|alcun\w?"
    r"|qualsiasi|algum\w?|qualquer|какой-либо|какие-либо|что-либо|أي"
)
"""Words that require a negation before them, such as `any`."""

ROMANCE: Final = compile_phrase_pattern(
    r"el|los|las|es|que|una|este|esta|se|hay|veo|creo|parece|puedo|encuentro|ha|de|il|di|che|un|na|em"
)
"""Words of Romance languages; in their presence `no` negates the verb, not the noun."""

DOUBTS: Final = compile_phrase_pattern(
    r"whether|if|maybe|perhaps|possibly|might|may|could (?:be|also|have|pass)|either|would (?:be|mean|look|seem|have|indicate)"
    r"|unclear|unsure|uncertain|inconclusive|undecided|insufficient|almost|nearly|as if|as though|allegedly|supposedly|seemingly|pretend\w{0,4}"
    r"|purport\w{0,4}|masquerad\w{1,4}|pass(?:es|ed)? (?:for|as|off)|mistaken for|trying to|tries to|attempts? to|claims? to be|so-called",
    r"not (?:\w{1,10} ){0,2}(?:sure|certain|convinced|confident)|not (?:enough|possible|clear|convinced|confident|necessarily|entirely|fully|completely|totally|wholly|quite|100|all|exactly)",
    r"(?:do not|don['\u2019]t|does not|doesn['\u2019]t) (?:know|prove|necessarily|mean)|not prove",
    r"(?:can(?:not|['\u2019]t| not)|could(?: not|n['\u2019]t)|unable to|not able to|impossible to|hard to|difficult to) (?:\w{1,20} ){0,2}"
    r"(?:say|tell|determine|decide|judge|know|verify|confirm|assess|conclude|help|assist|rule|be (?:sure|certain|confident|determined|told|said|ruled))",
    r"ob|vielleicht|möglicherweise|eventuell|könnten?|unklar|unsicher|nicht sicher|scheinbar|angeblich|fast|als ob|zwar",
    r"si|quizás?|tal vez|podría|posiblemente|puede que|acaso|no (?:está claro|estoy segur[oa]|se puede|puedo (?:saber|decir|determinar))|casi|dudoso",
    r"peut-être|certes|pourrait|se peut|possiblement|pas (?:sûre?|certaine?)|presque|semblant",
    r"se|forse|potrebbe|magari|non (?:sono sicur[oa]|è chiaro|posso (?:dire|stabilire|determinare))|quasi",
    r"talvez|poderia|pode ser|possivelmente|não (?:sei|tenho certeza|é possível|posso (?:dizer|determinar|afirmar))|quase",
    r"возможно|может быть|может|ли|не (?:могу (?:сказать|определить|судить)|уверен\w?|ясно|знаю)|почти|якобы|если|неясно",
    r"ربما|قد|لا (?:أستطيع|يمكن|يمكنني|أعرف)|إذا|هل|من المحتمل",
)
DOUBTING_GLYPHS: Final = re.compile(
    r"是否|也许|或许|(?<![很极大不])可能(?!性)|无法|無法|难以|難以|不确定|不確定|不清楚|如果|假如|仿佛|几乎"
)
DOUBTING_AFTER: Final = re.compile(
    r"かもしれ|かどうか|可能性|판단할\s?수\s?없|判断(?:でき|がつか|し(?:かね|づら))|분간|일지|인지|수도\s?있|수\s?있|わから|分かり|ように見え|처럼\s?보"
)
FIRST_THOUGHT: Final = compile_phrase_pattern(
    r"at first|initially|expecting|first (?:impression|glance|sight|guess|thought|instinct|impulse)|(?:i|we) (?:had |first |initially |originally |almost |nearly )*"
    r"(?:thought|assumed|suspected|leaned|expected|guessed|believed|wanted)|was (?:inclined|tempted|going|about) to|naively|superficially|on the surface",
    r"zuerst|zunächst|anfangs|auf den ersten blick|al principio|a primera vista|inicialmente|de entrada|au début|au premier abord|à première vue|d['\u2019]abord"
    r"|all['\u2019]inizio|a prima vista|inizialmente|no início|à primeira vista|a princípio|сначала|на первый взгляд|поначалу|في البداية|للوهلة الأولى",
)
FIRST_GLYPHS: Final = re.compile(r"起初|乍一看|一开始|一開始|最初|一見|첫인상|처음에|언뜻")
REPORTS: Final = compile_phrase_pattern(
    r"(?:claim|idea|notion|theory|suspicion|allegation|assumption|argument|suggestion|hypothesis|possibility|accusation|rumou?r|view|belief|those)s? "
    r"(?:that|of|who|is that)",
    r"(?:some|many|people|viewers|others|critics|skeptics|sceptics|one|you|they|users?|everyone|anyone|somebody|someone) "
    r"(?:may |might |could |would |will |can |have |has )?(?:say|says|said|argue|claim|claims|claimed|think|thinks|believe|suspect|object|insist|call|called|take|mistake)",
    r"(?:(?:road|street|shop|neon) sign|sign (?:reads|says)|caption|watermark|logo|banner|title|subtitle|poster|t?-?shirt|billboard|words?|letters?|inscription|overlay|hashtag|filename|description"
    r"|uploader|comments?|prompt|question|option|instructions?|schild|cartel|letrero|panneau|слово|надпись)",
)
"""Reported speech, or text in the picture; it is a claim of the answer only if the answer then denies it."""
UNTRUE: Final = compile_phrase_pattern(
    r"wrong|untrue|unfounded|baseless|mistaken|incorrect|unlikely|untenable|falls? apart|collapses|nonsense|misplaced|unwarranted|fails|overstated|false|stretch|mistake|error|absurd|naive|premature|ridiculous|unfair|generous|optimistic|unjustified|misleading"
)
INSTEAD: Final = re.compile(
    r"(?:rather\sthan|instead\sof|as\sopposed\sto|than|unlike|anstatt|statt|plutôt\sque|au\slieu\sd['\u2019e]|en\s(?:lugar|vez)\sde|em\svez\sde|piuttosto\sche"
    r"|invece\sdi|anziché|а\sне|而不是|而非)\W{0,3}(?:(?:an?|being|something|anything|one|ein\w{0,2}|une?|una|uma)\s){0,2}\W{0,3}$",
    re.IGNORECASE,
)
ANYTHING_BUT: Final = compile_phrase_pattern(r"anything (?:but|other than|besides)|everything but")
"""Negations with a `but` that introduces no contrast."""


_SPELLED: Final = (
    "zero zéro cero ноль صفر",
    "one eins uno um один واحد",
    "two zwei deux dos due dois duas два две اثنان اثنين ثانيتان ثانيتين",
    "three drei trois tres tre três три ثلاثة ثلاث",
    "four vier quatre cuatro quattro quatro четыре أربعة اربعة أربع",
    "five fünf cinq cinco cinque пять خمسة خمس",
    "six sechs seis sei шесть ستة",
    "seven sieben sept siete sette sete семь سبعة",
    "eight acht huit ocho otto oito восемь ثمانية",
    "nine neun neuf nueve nove девять تسعة",
    "ten zehn dix diez dieci dez десять عشرة",
)
_GLYPHS: Final = {
    **{glyph: n for n, glyph in enumerate("零一二三四五六七八九十")},
    "〇": 0, "两": 2, "兩": 2, "壱": 1, "弐": 2, "参": 3,
    "일": 1, "이": 2, "삼": 3, "사": 4, "오": 5, "한": 1, "두": 2, "세": 3, "네": 4, "다섯": 5, "여섯": 6,
}  # fmt: skip
_VALUES: Final = {word: n for n, words in enumerate(_SPELLED) for word in words.split()}
_WORD: Final = re.compile(
    rf"(?<![{LETTER}])(?:{'|'.join(sorted(_VALUES, key=len, reverse=True))})(?!['\u2019]?[{LETTER}])",
    re.IGNORECASE,
)
_GLYPH: Final = re.compile(
    rf"(?<![{''.join(set(''.join(_GLYPHS)))}])(?P<glyph>{'|'.join(_GLYPHS)})(?=\s?(?:秒|分|点|點|星|級|级|점|초))"
)


def replace_number_words(text: str) -> str:
    """Replace number words from zero to ten by digits; CJK ones only if alone or before a unit."""
    if (alone := text.strip()) in _GLYPHS:
        return str(_GLYPHS[alone])
    plain = _WORD.sub(lambda word: str(_VALUES[word[0].lower()]), text)
    return _GLYPH.sub(lambda glyph: str(_GLYPHS[glyph["glyph"]]), plain)


CONCEDES: Final = re.compile(
    r"\W{0,5}(?:even\s)?(?:although|though|while|whereas|despite|in\sspite|albeit|obwohl|aunque|bien\sque|sebbene|embora|хотя|رغم"
    r"|if|had|were|unless|suppose|assuming|falls|wenn|si|虽然|尽管|如果)\b|\W{0,5}(?:虽然|雖然|尽管|如果|若)",
    re.IGNORECASE,
)
WOULD_SAY: Final = re.compile(
    r"\b(?:i|we)(?:\swould|['\u2019]d)\s(?:\w{1,12}\s)?(?:say|call|judge|label|conclude)",
    re.IGNORECASE,
)
YES_NO: Final = re.compile(
    r"\W{0,5}(?:(?P<no>(?:(?:no|absolutely|certainly|definitely|clearly|of\scourse)\W{1,3})?(?:no|nope|not)|i\sdon['\u2019]t\sthink\sso|not\s(?:in\smy\s\w{1,10}|really|at\sall|a\schance)|far\sfrom\sit|by\sno\smeans|never|hardly"
    r"|nein|non|não|нет|いいえ|不是|不|아니요|아니오|لا)|(?:absolutely|certainly|definitely|of\scourse|yes|yep|ja|sí|oui|si|sì|sim|да|はい|是的?|네|예|نعم))\W{0,5}$",
    re.IGNORECASE,
)
NOT_SO: Final = re.compile(
    r"\W{0,5}(?:(?:but|yet|and)\s)?(?:(?:it|this|that)\s)?(?:isn['\u2019]t|is\snot|(?:it|that)['\u2019]s\snot|wasn['\u2019]t|was\snot)(?:\s(?:so|it|the\scase|true))?\W{0,5}"
    r"|\W{0,5}(?:aber\snicht|pero\sno(?:\slo\ses)?|mais\sne\sl['\u2019]est\spas|ma\snon\slo\sè|mas\snão\sé|но\s(?:это\s)?не(?:\sтак)?)\W{0,5}",
    re.IGNORECASE,
)
TRUTH: Final = re.compile(
    r"\W{0,3}(?:(?P<no>false|no|nein|non|não|нет|否|いいえ|아니오|لا)|true|yes|ja|sí|oui|sì|sim|да|是|はい|예|네|نعم)\W{0,3}",
    re.IGNORECASE,
)
CORRECTS: Final = re.compile(
    r"(?:^|(?<=[.!\n\u2014]))[\s*_-]{0,5}(?:hm+|wait|hold\son|actually|correction|scratch\sthat|on\s(?:second|closer|reflection|re)|i\s(?:change|take\s(?:it|that)\sback|retract"
    r"|was\swrong|correct|revise)|let\sme\s(?:correct|revise|reconsider)|looking\s(?:again|closer)|edit|update|moment|korrektur|corrección|correction|更正|等等|訂正|정정)\b",
    re.IGNORECASE,
)
OR: Final = re.compile(
    r"\W{0,5}(?:(?:or|and|vs\.?|versus|nor|oder|ou|o|y|e|и|или|أو|或|还是|か|또는)(?!\w))?\W{0,5}(?:an?\s|ein\w{0,2}\s)?",
    re.IGNORECASE,
)
OF_PARTS: Final = re.compile(
    r"\b(?:parts?|some|portions?|areas?|regions?|elements?|aspects?|sections?|details?|half|third|(?:most|much|beginning|start|end|middle|rest)\sof|many|few(?!\s(?:would|will|could|people|viewers))|background|else|rest|otherwise)\b",
    re.IGNORECASE,
)
SUBJECT: Final = re.compile(
    r"(?<!of\s)\b(?:video|clip|footage|recording|film|movie|sequence|content|material|shot|scene|none\sof\s(?:this|it)|nothing|it|this|that|everything|verdict|answer|these\sframes|the\sframes"
    r"|conclusion|judge?ment|classification|label|result|my|que\s(?:sea|es|soit|est|sia|è|seja|é)|i|we|vid[eé]o|vídeo|filmato|clipe|aufnahme|esto|ce|cette|c['\u2019]est|das|es|séquence|grabación|gravação"
    r"|видео|ролик|запись|клип|это|он|(?:ال|لل|بال)?فيديو|المقطع|مقطع|هذا|[أا]نه|النتيجة)\b",
    re.IGNORECASE,
)
LITTLE: Final = re.compile(
    r"(?:\W{0,5}\b(?:and|nicht|kein\w{0,2}|pas|non|não|не|niet|ne|no|sure|certain|[0-9]{1,3}(?=\s?%)|so|but|yet|لكنه|لكن|بل|لا|thus|hence|therefore|however|overall|clearly|definitely|certainly|likely|obviously|almost\scertainly|evidently|undoubtedly"
    r"|total|pure|complete|simply|just|plain|mit\ssicherheit|höchstwahrscheinlich|definitiv|vermutlich|wohl|offensichtlich|sicher|ganz|definitivamente|seguramente|certainement|sûrement|sicuramente|certamente|probabilmente|provavelmente|точно|похоже|видимо|probably|most|very|highly|completely|entirely|totally|fully|not|is|are|was|looks?|appears?|seems?|feels?|to|be|have|been|a|an|the|rather|actually|wait|no"
    r"|correction|final|answer|verdict|ist|sehr|klar|eindeutig|also|ein|eine|wahrscheinlich|parece|muy|claramente|probablemente|un|est|semble|très|probablement"
    r"|è|sembra|molto|é|muito|явно|скорее|всего|вероятно|должно|by|being|as|leaning|towards?|aber|doch|jedoch|sondern|pero|sino|mais|ma|mas|но|far|from|anything|wirkt|wirken|sieht|scheint|für)\b){0,8}\W{0,8}",
    re.IGNORECASE,
)
FOLLOWS: Final = re.compile(
    r"\W{0,5}(?:$|(?P<clip>\b(?:videos?|clips?|footage|recordings?|film|movie|sequence|content|material|one|about\s(?:it|this|the\s(?:video|clip|footage))|vid[eé]o|vídeo|aufnahme|видео|ролик|запись)\b)"
    r"|\b(?:because|since|as|and|or|due|based|by|with|from|using|enough|i|rather|not|were|was|is|in|at|on|for|to|throughout|overall|given|after|through|here|it|than"
    r"|beyond|deal|aus|aussehen|instead|nor|about|whatsoever|anywhere|cannot|does|do|must|has|have|should|would|will|could|y|et|e|und|por|per|da|von|mit|durch|con|com|par|pour|avec|ist|sind|sei|war|wurde|worden|wirkt|sein|hält|halten?|gehalten|einstufen|nennen|bezeichnen|oder|ou|и|или|من|بواسطة|باستخدام)\b)"
    r"|[^\w\s]",
    re.IGNORECASE,
)
THAT: Final = re.compile(
    r"\W{0,5}(?:that(?!\s(?:suggests?|means|is|makes|indicates?|points|tells|shows|leads|alone|said)\b)|dass|daß|que|qu['\u2019]|che|أن"
    r"|что(?!\s(?:указывает|говорит|свидетельствует|означает|подтверждает|делает|выглядит))"
    r"|to\s(?:\w{1,12}\s)?(?:call|say|believe|think|label|conclude|suspect|suggest|assume|consider))(?:\b|(?<=['\u2019]))",
    re.IGNORECASE,
)
