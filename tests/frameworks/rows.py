"""The programs on frameworks of agents: what each is tried with, and how many calls it makes.

The answers are a script of `outcomes.standin`; `§` stands for a number that is another with each recording.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "programs"
ENVIRONMENTS = ("newer", "older", "crew", "adk")
"""The files in `environments/`; a program is tried in the first that has all it needs."""
_PIN = re.compile(r"^([\w.-]+)(?:\[.*\])?==(\S+)$", re.MULTILINE)
BASE = """\
call look_up {"city": "Oslo"} && call book {"city": "Bergen"}
call note {"text": "booked"}
Your trip number § is booked.
"""
"""Two tools side by side, another one, and a text."""


@cache
def pins_of(environment: str) -> dict[str, str]:
    """Give the versions of an environment."""
    page = PROGRAMS.parent / "environments" / f"{environment}.txt"
    return dict(_PIN.findall(page.read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True)
class Row:
    """A program in `programs/`, and what is expected of it."""

    program: str
    framework: str
    """The framework as its distribution is called."""
    tries: str
    """What of the framework it uses, in the words of the table."""
    llm: int
    """Calls of models that it makes."""
    tools: int
    """Tools that it runs, each of which writes a line into `effects.txt`."""
    answers: str
    verdict: str = "exact"
    result: str = "same"
    """What each replay says."""
    starts: tuple[tuple[str, ...], ...] = ((),)
    """The words behind the program's name, one tuple a process; each process is a run of its own."""
    structure: str = ""
    """Which sections its framework tells of, in all its processes; every call of a model or tool is in one of them.

    Empty where nobody counted them."""
    elsewhere: str = ""
    """The same in an environment whose other versions of its parts make it another."""
    beside: tuple[str, ...] = field(default=())
    """Other distributions that it needs."""

    @property
    def text(self) -> str:
        return (PROGRAMS / f"{self.program}.py").read_text(encoding="utf-8")

    @property
    def wants(self) -> dict[str, str]:
        """Give the distributions that it is tried with, and their versions."""
        names = (self.framework, *self.beside)
        pinned = next(pins for each in ENVIRONMENTS if set(names) <= (pins := pins_of(each)).keys())
        return {name: pinned[name] for name in names}


ROWS: dict[str, Row] = {}


def row(program: str, framework: str, tries: str, llm: int, tools: int, answers: str, **more: object) -> None:
    """Add a row."""
    ROWS[program] = Row(program, framework, tries, llm, tools, answers, **more)  # type: ignore[arg-type]


def _fields(**said: str) -> str:
    """Spell an answer as DSPy asks for it."""
    told = [f"[[ ## {name} ## ]]\\n{text}\\n\\n" for name, text in {**said, "completed": ""}.items()]
    return "".join(told).removesuffix("\\n\\n") + "\n"


def _step(thought: str, tool: str, arguments: str) -> str:
    return _fields(next_thought=thought, next_tool_name=tool, next_tool_args=arguments)


row(
    "langchain_agent",
    "langchain",
    "`create_agent`: invoked, awaited, streamed; OpenAI and Anthropic; `ToolRuntime`, its state and store",
    12,
    12,
    BASE * 4,
    beside=("langchain-openai", "langchain-anthropic"),
    structure="4 agent, 24 chain",
)

row(
    "langgraph_memory",
    "langgraph",
    "`StateGraph` with `MemorySaver`, `ToolNode`, branches side by side, `Send`, a subgraph; whole and streamed",
    12,
    9,
    BASE * 2 + "@for=Oslo. Oslo is §.\n@for=Bergen. Bergen is §.\n@for=Bodø. Bodø is §.\n" + BASE,
    beside=("langchain-openai",),
    structure="27 chain",
)
row(
    "langgraph_interrupt",
    "langgraph",
    "`interrupt` in a tool and in a node, `Command(resume=…)`, `aupdate_state` of an earlier state",
    6,
    4,
    BASE + "A draft §.\nA short draft §.\nA long draft §.\n",
    beside=("langchain", "langchain-openai"),
    structure="2 agent, 15 chain",
)
row(
    "langgraph_sqlite",
    "langgraph",
    "`SqliteSaver`; an `interrupt`, resumed in another process",
    3,
    3,
    BASE,
    starts=(("begin",), ("resume",)),
    beside=("langgraph-checkpoint-sqlite", "langchain", "langchain-openai"),
    structure="2 agent, 7 chain",
)
row(
    "llamaindex_agents",
    "llama-index-core",
    "`FunctionAgent`, `AgentWorkflow` with a hand-off, streamed; a `Workflow` with `ctx.store`",
    8,
    6,
    BASE
    + 'call look_up {"city": "Oslo"} && call handoff {"to_agent": "desk", "reason": "book"}\n'
    + 'call book {"city": "Bergen"} && call note {"text": "booked"}\n'
    + "Your trip number § is booked.\n"
    + "@for=Tell @delay=30 Told §.\n",
    beside=("llama-index-llms-openai-like",),
    structure="2 agent, 42 chain",
    elsewhere="2 agent, 41 chain",
)
row(
    "llamaindex_context",
    "llama-index-core",
    "tools that keep things in the `ctx.store` of a `Context`",
    3,
    3,
    BASE,
    beside=("llama-index-llms-openai-like",),
    structure="1 agent, 16 chain",
)
row(
    "openai_agents",
    "openai-agents",
    "hand-off, `input_guardrail`, `RunContextWrapper`, `SQLiteSession` in memory; sync, awaited, streamed",
    13,
    9,
    BASE
    + "@for=Check:Book @delay=150 yes §\n@for=Check:Write no §\n@for=poem @delay=300 A poem §.\n"
    + 'call look_up {"city": "Oslo"} && call transfer_to_booker {}\n'
    + 'call book {"city": "Bergen"} && call note {"text": "booked"}\n'
    + "Your trip number § is booked.\n"
    + BASE
    + "You are welcome §.\n",
    structure="8 agent, 23 chain",
)
row(
    "openai_agents_file",
    "openai-agents",
    "`OpenAIChatCompletionsModel`; a `SQLiteSession` in a file, gone on with in another process",
    4,
    3,
    BASE + "You are welcome §.\n",
    starts=(("Book me a trip.",), ("Thank you.",)),
    structure="2 agent, 6 chain",
)
row(
    "pydantic_ai_agents",
    "pydantic-ai-slim",
    "`deps`, tools of a module and of a function, `output_type`; sync, awaited, streamed; OpenAI and Anthropic",
    9,
    9,
    BASE * 2 + BASE.replace("Your trip number § is booked.", 'call final_result {"city": "Bergen", "number": §}'),
    structure="3 agent",
)
row(
    "smolagents_tools",
    "smolagents",
    "`ToolCallingAgent` with `@tool` functions and a `Tool` class; whole and streamed",
    6,
    6,
    BASE.replace("Your trip", 'call final_answer {"answer": "Your trip').replace("booked.", 'booked."}') * 2,
    structure="2 agent, 6 chain",
)
row(
    "smolagents_code",
    "smolagents",
    "`CodeAgent`",
    2,
    2,
    r"<code>\nsaid = look_up('Oslo') + ' ' + book('Bergen')\nprint(said)\n</code>" + "\n"
    r"<code>\nfinal_answer(f'Your trip number § is booked: {said}')\n</code>" + "\n",
    structure="1 agent, 2 chain",
)
row(
    "autogen_team",
    "autogen-agentchat",
    "`AssistantAgent` whole and streamed, `CancellationToken`, `Swarm` with hand-offs, `RoundRobinGroupChat`",
    12,
    9,
    BASE * 2
    + 'call look_up {"city": "Oslo"}\ncall transfer_to_booker {}\n'
    + 'call book {"city": "Bergen"} && call note {"text": "booked"}\n'
    + "Your trip number § is booked.\nA line §.\nA good line §.\n",
    structure="7 agent, 2 chain",
    beside=("autogen-ext",),
)
row(
    "semantic_kernel_agent",
    "semantic-kernel",
    "`ChatCompletionAgent` with a plugin that holds state; whole and streamed, on a thread",
    6,
    6,
    BASE.replace("call ", "call Travel-") * 2,
    structure="2 agent",
)
row(
    "agent_framework_agent",
    "agent-framework-core",
    "chat completions and responses, `tool` and plain functions, a session; whole and streamed",
    8,
    6,
    (BASE + "You are welcome §.\n") * 2,
    beside=("agent-framework-openai",),
)
row(
    "strands_agent",
    "strands-agents",
    "`ToolContext`, `agent.state`; sync and streamed",
    6,
    6,
    BASE * 2,
    structure="2 agent",
)
row(
    "instructor_models",
    "instructor",
    "a retry after a validation error, `create_partial`, `create_iterable`; sync, awaited, streamed",
    5,
    0,
    'call Trip {"city": "oslo", "number": §}\n'
    + 'call Trip {"city": "Oslo", "number": §}\n' * 3
    + 'call IterableTrip {"tasks": [{"city": "Oslo", "number": §}, {"city": "Bodo", "number": 2}]}\n',
)
row(
    "mirascope_calls",
    "mirascope",
    "`llm.call` and `llm.tool`, resumed with what the tools gave; sync, awaited side by side, streamed",
    8,
    6,
    BASE * 2 + "@for=Tell Told §.\n",
)
row(
    "dspy_react",
    "dspy",
    "`ReAct` sync and awaited, `ChainOfThought`",
    9,
    4,
    _step("I look.", "look_up", '{"city": "Oslo"}')
    + _step("I book.", "book", '{"city": "Bergen"}')
    + _step("Done.", "finish", "{}")
    + _fields(reasoning="Done.", answer="Your trip number § is booked.")
    + _step("I look.", "look_up", '{"city": "Oslo"}')
    + _step("I note.", "note", '{"text": "booked"}')
    + _step("Done.", "finish", "{}")
    + _fields(reasoning="Done.", answer="Your trip number § is noted.")
    + _fields(reasoning="So.", answer="Because of §."),
    structure="2 agent, 12 chain",
    beside=("litellm",),
)
row(
    "litellm_calls",
    "litellm",
    "`completion` on OpenAI and Anthropic, streamed, `acompletion` side by side; a loop of one's own",
    11,
    9,
    BASE * 3 + "@for=Tell Told §.\n",
)
row(
    "agno_team",
    "agno",
    "`session_state` in a `RunContext`, a `Team`; whole and streamed with events",
    13,
    9,
    BASE
    + 'call delegate_task_to_member {"member_id": "planner", "task": "Book."}\n'
    + 'call look_up {"city": "Oslo"} && call book {"city": "Bergen"}\nBooked §.\n'
    + 'call delegate_task_to_member {"member_id": "writer", "task": "Note."}\n'
    + 'call note {"text": "booked"}\nNoted §.\nYour trip number § is booked.\n'
    + BASE,
)
row(
    "haystack_agent",
    "haystack-ai",
    "`Agent` with `inputs_from_state` and `outputs_to_state`; sync and awaited with a streaming callback",
    6,
    6,
    BASE * 2,
    structure="2 agent",
)
row(
    "google_adk_agents",
    "google-adk",
    "`session.state` by `ToolContext`, transfer to a sub-agent, `SequentialAgent`; streamed, on its Claude class",
    13,
    9,
    BASE * 2
    + 'call look_up {"city": "Oslo"}\ncall transfer_to_agent {"agent_name": "booker"}\n'
    + 'call book {"city": "Bergen"}\ncall note {"text": "booked"}\nYour trip number § is booked.\n'
    + "A draft §.\nA good draft §.\n",
    structure="7 agent, 4 chain",
    beside=("anthropic",),
)
row(
    "crewai_crew",
    "crewai",
    "a `Crew` of two agents and two tasks, `@tool` functions and a `BaseTool` class",
    4,
    3,
    'call look_up {"city": "Oslo"}\nA plan §.\ncall book {"city": "Bergen"} && call note {"text": "booked"}\n'
    "Your trip number § is booked.\n",
    structure="2 agent, 3 chain",
)
row(
    "ag2_agent",
    "ag2",
    "`Agent` with `context.variables`, asked again; whole and streamed",
    8,
    6,
    (BASE + "You are welcome §.\n") * 2,
)
