/**
 * What is said to the daemon: one POST of events, one question for the profile.
 *
 * An answer counts only if it is what a daemon of ours says. Whatever else answers at the address (a proxy's page, a
 * redirect, half an answer, silence) is the same as nobody, and the events are kept.
 */

import type { Settings } from "./settings.ts"

/** What a spool says of itself with each request. Times are ms since 1970. */
export type Waiting = {
  depth: number
  oldest_at: number | null
  dropped: number
  dropped_since: number | null
}

export type Outcome =
  /** All are durable, but for so many that the daemon will never take. */
  | { readonly kind: "stored"; readonly refused: number }
  /** The daemon takes none of them, now or later. */
  | { readonly kind: "refused" }
  /** Nothing is known to be stored. The daemon may have said when to come again. */
  | { readonly kind: "away"; readonly retryAfterMs: number }

const ANSWER_BYTES_MAX = 1024 * 1024
const CAPTURE_WAIT_MS = 5_000
const PROFILE_WAIT_MS = 1_500
const PROFILE_CODE_POINTS_MAX = 3_000
const AWAY: Outcome = { kind: "away", retryAfterMs: 0 }

type Answer = { readonly status: number; readonly retryAfterMs: number; readonly body: unknown }

/** Post events, each one JSON object as text. Never throws. */
export async function capture(settings: Settings, events: readonly string[], waiting: Waiting): Promise<Outcome> {
  const body = `{"events":[${events.join(",")}],"spool":${JSON.stringify(waiting)}}`
  const answer = await ask(settings, "/capture", body, CAPTURE_WAIT_MS)
  if (answer === undefined) return AWAY
  const facts = record(answer.body)
  if (answer.status === 200 && typeof facts.stored === "number") {
    const dropped = Array.isArray(facts.dropped) ? facts.dropped : []
    return { kind: "stored", refused: dropped.filter((each) => record(each).code !== "BLANK").length }
  }
  const { code, field } = record(facts.error)
  // What is wrong with something else than the events is no reason to drop one.
  const isAboutEvents = typeof field !== "string" || field.startsWith("events")
  if (answer.status === 400 && code === "VALIDATION_ERROR" && isAboutEvents) return { kind: "refused" }
  return { kind: "away", retryAfterMs: answer.retryAfterMs }
}

/**
 * The profile as text for a model, at most 3000 characters; empty if nothing is stored or nobody answers.
 *
 * Asked at the profile of tools that surely has `get_profile`, and at the default one where a token is bound to that.
 */
export async function profile(settings: Settings, project: string): Promise<string> {
  const params = { name: "get_profile", arguments: project ? { project } : {} }
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params })
  const until = Date.now() + PROFILE_WAIT_MS
  for (const path of ["/mcp/memory", "/mcp"]) {
    const answer = await ask(settings, path, body, Math.max(1, until - Date.now()))
    const result = record(record(answer?.body).result)
    if (result.isError === true || !Array.isArray(result.content)) continue
    if (isEmpty(record(result.structuredContent))) return ""
    const text = record(result.content[0]).text
    return typeof text === "string" ? Array.from(text).slice(0, PROFILE_CODE_POINTS_MAX).join("") : ""
  }
  return ""
}

/** An object's fields; none for anything else. */
export function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

function isEmpty(facts: Record<string, unknown>): boolean {
  const lists = ["sections", "preferences", "lessons"].map((name) => facts[name])
  return lists.every((list) => Array.isArray(list) && list.length === 0)
}

async function ask(settings: Settings, path: string, body: string, waitMs: number): Promise<Answer | undefined> {
  const headers: Record<string, string> = {
    "content-type": "application/json",
    accept: "application/json",
    "user-agent": "opencode",
  }
  if (settings.token) headers.authorization = `Bearer ${settings.token}`
  try {
    // A redirect is not followed: the token is for this address alone.
    const signal = AbortSignal.timeout(waitMs)
    const response = await fetch(settings.url + path, { method: "POST", headers, body, redirect: "manual", signal })
    const text = await read(response)
    const retryAfterMs = Number(response.headers.get("retry-after") ?? 0) * 1000 || 0
    return { status: response.status, retryAfterMs, body: parsed(text) }
  } catch {
    return undefined
  }
}

async function read(response: Response): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of response.body ?? []) {
    length += piece.length
    if (length > ANSWER_BYTES_MAX) throw new RangeError("no answer of a daemon is this long")
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString("utf8")
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What is a text, else none. */
export function text(value: unknown): string {
  return typeof value === "string" ? value : ""
}

/** The texts of a tool of an MCP server, whose answer is a list of blocks. */
export function blocks(content: unknown): string {
  if (!Array.isArray(content)) return ""
  return content
    .map((block) => text(record(block).text))
    .filter((line) => line !== "")
    .join("\n")
}
