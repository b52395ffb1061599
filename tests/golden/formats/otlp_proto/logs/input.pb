
ì


service.name
deskÏ


an.emitter}*&2$
"
content
Where is parcel 4711?2
gen_ai.system
openaiJm‹(ÖÒU5İ¢ Ë\"8B:Rü(Ê³şìNşYÀ¡àfîPêbgen_ai.user.message@	Á¡àfîPê	INFO*
{"index": 0}2

event.name
gen_ai.choice