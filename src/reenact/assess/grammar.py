"""The grammar of the assertion language. Imported only when a text is read.

LALR with a lexer that knows the context, so that a tool may be called `before` and an argument `times`.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from lark import Lark

GRAMMAR: Final = r"""
start: statement
?statement: called | before | only_after | path | fields | fits | every | none_after | says | total | models | ends
          | grounded | prose | price | wrote

called: "called" calls count?
      | "never" "called" calls -> never
count: "exactly" NUMBER _times -> exactly
     | "at" "least" NUMBER _times -> at_least
     | "at" "most" NUMBER _times -> at_most
     | "between" NUMBER "and" NUMBER _times -> between
     | "once" -> once
_times: "time" | "times"
before: "called" calls "before" calls
only_after: "called" calls "only" "after" calls

calls: KIND name? where? -> calls_of_kind
     | name where? -> calls_of_name
name: NAME | STRING
where: "where" condition ("and" condition)*
condition: place op value -> compares
         | place among_op "[" (value ("," value)*)? "]" -> among
         | place exists_op -> presence
place: (FIELD | STRING) step*
step: "." (FIELD | STRING) -> key
    | "[" NUMBER "]" -> index
    | "[" "*" "]" -> any_item
!op: "=" | "is" | "!=" | "is" "not" | "<" | "<=" | ">" | ">=" | "contains" | "does" "not" "contain" | "matches"
   | "does" "not" "match"
!among_op: "in" | "not" "in"
!exists_op: "exists" | "does" "not" "exist"

path: "path" path_mode calls ("," calls)*
!path_mode: "is" | "contains" | "starts" "with" | "ends" "with"

fields: "arguments" "of" calls "are" members
fits: "arguments" "of" calls "fit" ("its" | "their") "schema"
members: member ("," member)* more?
       | MORE -> anything
       | "nothing" -> nothing
more: "," MORE
member: (FIELD | STRING) optional? ":" shape
!optional: "?"
?shape: single
      | single ("or" single)+ -> one_of
?single: TYPE -> simple
       | LIST -> simple
       | LIST "of" single -> list_of
       | scalar -> exactly_value
       | "(" shape ")"
       | "{" members "}"
LIST: "list"
TYPE: "string" | "number" | "integer" | "boolean" | "null" | "object" | "any"

every: "every" calls "has" condition ("and" condition)*
none_after: "no" "call" ("of" calls)? "after" (calls | REFUSAL)

says: "answer" step* says_op -> answer
    | "response" step* says_op -> response
    | "status" says_op -> status
    | "stdout" says_op -> stdout
    | "stderr" says_op -> stderr
    | "returns" step* says_op -> returns
says_op: op value -> says_compares
       | among_op "[" (value ("," value)*)? "]" -> says_among
       | exists_op -> says_presence

wrote: "wrote" name -> wrote
     | "never" "wrote" name -> never_wrote

total: measure ("of" calls)? bound NUMBER unit?
!measure: "tokens" | "input" "tokens" | "output" "tokens" | "cost" | "duration"
!bound: "at" "most" | "at" "least"
!unit: "usd" | "s"

models: "model" model_side "is" name ("," name)*
!model_side: "asked" | "answered"

ends: "ends" "ok" -> ends_ok
    | "ends" "with" name -> ends_raised
    | "ends" "with" "exit" "code" NUMBER -> ends_code

grounded: "answer" "is"? "grounded" "in" ground
!ground: "the" "retrieved" "documents" | "the" "tool" "results"
       | "the" "retrieved" "documents" "and" "tool" "results"

prose: "prose" ":" "answer" prose_asks STRING least? judge?
!prose_asks: "says" | "is" "like"
least: "at" "least" NUMBER
judge: "by" (FIELD | STRING)

price: "price" "of" name "is" NUMBER "in" "," NUMBER "out" cached? written? "usd" "per" "million" "tokens"
cached: "," NUMBER "cached"
written: "," NUMBER "written"

?value: scalar
      | "null" -> null
      | "[" (value ("," value)*)? "]" -> array
      | "{" (pair ("," pair)*)? "}" -> object
pair: STRING ":" value
scalar: STRING -> text
      | NUMBER -> number
      | "true" -> true
      | "false" -> false

KIND.2: /(?:llm|embedding|tool|retriever|reranker|agent|chain|guardrail|evaluator)(?![\w.*?:\/-])/
      | /(?:prompt|decision|http|database)(?![\w.*?:\/-])/
REFUSAL.2: /refusal(?![\w.*?:\/-])/
MORE: "..."
NAME: /[\w*?$][\w*?.:$\/-]*/
FIELD: /[^\W\d][\w$-]*|[$][\w$-]*/
STRING: /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/
NUMBER: /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w])/
COMMENT: /#[^\n]*/
%ignore /[ \t\r]+/
%ignore COMMENT
"""


@cache
def parser() -> Lark:
    """Make the parser, once for each process."""
    return Lark(GRAMMAR, parser="lalr", lexer="contextual", maybe_placeholders=False)
