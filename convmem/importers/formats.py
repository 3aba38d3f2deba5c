"""The formats that are known here, in the order in which a source is held against them."""

from convmem.importers.chatgpt import CHATGPT
from convmem.importers.claude_ai import CLAUDE_AI
from convmem.importers.claude_code import CLAUDE_CODE
from convmem.importers.codex import CODEX
from convmem.importers.model import Format
from convmem.importers.opencode import OPENCODE
from convmem.importers.server_memory import SERVER_MEMORY
from convmem.importers.th_memory import TH_MEMORY

FORMATS: tuple[Format, ...] = (CHATGPT, CLAUDE_AI, CLAUDE_CODE, CODEX, OPENCODE, SERVER_MEMORY, TH_MEMORY)
