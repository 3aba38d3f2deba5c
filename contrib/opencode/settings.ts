/**
 * Where the daemon answers and where events wait when it does not, read from the environment once.
 *
 * The names are those of the `convmem` command. The spool is a file of this plugin's own beside that command's: the
 * command guards its file with a lock of the kernel, which JavaScript cannot take.
 */

import { createHash } from "node:crypto"
import { userInfo } from "node:os"
import { isAbsolute, join } from "node:path"

export type Settings = {
  /** Base URL without a slash at its end. */
  readonly url: string
  /** Sent as a bearer token; empty if the daemon asks for none. */
  readonly token: string
  /** The file in which events wait; undefined where there is no place to keep state. */
  readonly spool: string | undefined
}

const URL_DEFAULT = "http://127.0.0.1:8484"
const PATH_OF_MCP = /\/mcp(?:\/[a-z]+)?$/

/** The settings; undefined if CONVMEM_URL is no address of a daemon, for then there is nothing to talk to. */
export function settingsOf(environment: Readonly<Record<string, string | undefined>>): Settings | undefined {
  const url = baseOf(environment.CONVMEM_URL?.trim() || URL_DEFAULT)
  if (url === undefined) return undefined
  return { url, token: environment.CONVMEM_TOKEN?.trim() ?? "", spool: spoolOf(environment, url) }
}

function baseOf(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const isPlain = !url.username && !url.password && !url.search && !url.hash
  if (!isPlain || (url.protocol !== "http:" && url.protocol !== "https:")) return undefined
  return url.origin + url.pathname.replace(/\/$/, "").replace(PATH_OF_MCP, "")
}

function spoolOf(environment: Readonly<Record<string, string | undefined>>, url: string): string | undefined {
  const given = environment.XDG_STATE_HOME
  const home = environment.HOME && isAbsolute(environment.HOME) ? environment.HOME : knownHome()
  const state = given && isAbsolute(given) ? given : join(home, ".local", "state")
  if (!isAbsolute(state)) return undefined
  const name = createHash("sha256").update(url).digest("hex").slice(0, 16)
  return join(state, "convmem", "spool", `${name}-opencode.jsonl`)
}

/** The home that the system knows of this user; empty if it knows none, for which it throws. */
function knownHome(): string {
  try {
    return userInfo().homedir
  } catch {
    return ""
  }
}
