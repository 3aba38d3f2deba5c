/**
 * From what happens in OpenCode to what is captured: the prompts of a person, the calls of tools, and errors.
 *
 * A prompt comes in pieces: the message first, without a word in it, then its parts, each one whole. It is taken when
 * the answer to it begins, or when no further part has come for a moment. What a person did not write is none: parts
 * that OpenCode adds, and the prompts that one agent gives to another. Calls of convmem's own tools are left out, for
 * memory that remembers what it recalled finds its own echo.
 *
 * Secrets are taken out and texts are cut before anything leaves this module.
 */

import { randomUUID } from "node:crypto"

import { blocks, record, text } from "./daemon.ts"
import type { Delivery } from "./delivery.ts"
import { redact, redactName } from "./redaction.ts"

type Kind = "prompt" | "tool_call" | "error"

type Happened = {
  readonly kind: Kind
  readonly id: string
  readonly session: string
  readonly at: number
  readonly content: () => string
  readonly tool?: string
  readonly status?: string
}

type Pending = {
  session: string
  at: number
  isPrompt: boolean
  readonly texts: Map<string, string>
  timer: ReturnType<typeof setTimeout> | undefined
}

export type Place = { readonly project: string; readonly directory: string }

const PROMPT_CODE_POINTS_MAX = 4_000
const OTHER_CODE_POINTS_MAX = 500
const INPUT_CODE_POINTS_MAX = 200
// So much of a text is looked at; at its end a secret may be cut in two, so that much of it is not kept.
const LOOKED_AT_UNITS_MAX = 64 * 1024
const NOT_KEPT_UNITS = 8 * 1024
const BYTES_MAX = { name: 256, status: 64, directory: 1024 }
const QUIET_MS = 300
const REMEMBERED_MAX = 1_000
const PENDING_MAX = 100
const OWN_TOOLS = "convmem_"
// A person who stops an answer makes no mistake.
const STOPPED_BY_A_PERSON = "MessageAbortedError"

/** Ids of what comes without one; the same for each of the plugin's copies that is told of it. */
const minted = new WeakMap<object, string>()

export class Events {
  readonly #delivery: Delivery
  readonly #place: Place
  readonly #pending = new Map<string, Pending>()
  /** Messages of models, whose parts stream by, and sessions that an agent opened for another. */
  readonly #answers = new Set<string>()
  readonly #children = new Set<string>()
  readonly #undo: () => void

  constructor(delivery: Delivery, place: Place) {
    this.#delivery = delivery
    this.#place = place
    this.#undo = delivery.beforeEnd(() => this.#takeAll())
  }

  /** Nothing more will happen here: take what is pending. */
  close(): void {
    this.#takeAll()
    this.#undo()
  }

  /** Something was said on OpenCode's bus. */
  happened(event: unknown): void {
    const { type, properties, id } = record(event)
    const facts = record(properties)
    switch (type) {
      case "message.updated":
        return this.#message(record(facts.info))
      case "message.part.updated":
        return this.#part(record(facts.part))
      case "message.removed":
        return this.#forget(text(facts.messageID))
      case "session.created":
      case "session.updated":
        return this.#session(record(facts.info))
      case "session.error":
        return this.#sessionError(text(id) || mintedFor(event), text(facts.sessionID), record(facts.error))
    }
  }

  /** A tool has done its work. */
  toolCalled(input: unknown, output: unknown): void {
    const { tool, sessionID, callID, args } = record(input)
    const { title, output: result, content, metadata } = record(output)
    const exit = record(metadata).exit
    const status = typeof exit === "number" && exit !== 0 ? `exit ${exit}` : "completed"
    const body = text(result) || blocks(content)
    this.#tool("tool_call", text(tool), text(sessionID), text(callID), status, text(title), args, body)
  }

  #message(info: Record<string, unknown>): void {
    const id = text(info.id)
    if (info.role === "assistant") {
      remember(this.#answers, id)
      this.#forget(id)
      return this.#take(text(info.parentID))
    }
    if (id === "" || info.role !== "user") return
    const session = text(info.sessionID)
    if (this.#children.has(session)) return this.#forget(id)
    const pending = this.#pendingOf(id)
    pending.session = session
    pending.at = time(record(info.time).created)
    pending.isPrompt = true
    this.#takeWhenQuiet(id, pending)
  }

  #part(part: Record<string, unknown>): void {
    const message = text(part.messageID)
    if (part.type === "tool") return this.#toolFailed(part)
    if (part.type !== "text" || message === "" || this.#answers.has(message)) return
    const pending = this.#pendingOf(message)
    if (part.synthetic === true || part.ignored === true) pending.texts.delete(text(part.id))
    else pending.texts.set(text(part.id), text(part.text))
    if (pending.isPrompt) this.#takeWhenQuiet(message, pending)
  }

  #toolFailed(part: Record<string, unknown>): void {
    const { status, input, error } = record(part.state)
    if (status !== "error") return
    this.#tool("error", text(part.tool), text(part.sessionID), text(part.callID), status, "", input, text(error))
  }

  #session(info: Record<string, unknown>): void {
    if (text(info.parentID) !== "") remember(this.#children, text(info.id))
  }

  #sessionError(id: string, session: string, error: Record<string, unknown>): void {
    const name = text(error.name)
    if (session === "" || name === "" || name === STOPPED_BY_A_PERSON) return
    const said = text(record(error.data).message) || text(error.message)
    const content = () => cut(clean(said ? `${name}: ${said}` : name), OTHER_CODE_POINTS_MAX)
    this.#add({ kind: "error", id, session, at: Date.now(), content, status: name })
  }

  #tool(
    kind: Kind,
    tool: string,
    session: string,
    id: string,
    status: string,
    title: string,
    input: unknown,
    result: string,
  ): void {
    if (tool.startsWith(OWN_TOOLS)) return
    const content = () => {
      const asked = cut(clean(JSON.stringify(input) ?? ""), INPUT_CODE_POINTS_MAX)
      const lines = [`${clean(tool)} ${asked}`.trim(), clean(title), clean(result)]
      return cut(lines.filter((line) => line !== "").join("\n"), OTHER_CODE_POINTS_MAX)
    }
    this.#add({ kind, id, session, at: Date.now(), content, tool, status })
  }

  #pendingOf(id: string): Pending {
    const known = this.#pending.get(id)
    if (known !== undefined) return known
    const made: Pending = { session: "", at: 0, isPrompt: false, texts: new Map(), timer: undefined }
    this.#pending.set(id, made)
    const [oldest] = this.#pending.keys()
    if (this.#pending.size > PENDING_MAX && oldest !== undefined) this.#take(oldest)
    return made
  }

  #takeWhenQuiet(id: string, pending: Pending): void {
    clearTimeout(pending.timer)
    pending.timer = setTimeout(() => this.#take(id), QUIET_MS)
    pending.timer.unref?.()
  }

  #takeAll(): void {
    for (const id of [...this.#pending.keys()]) this.#take(id)
  }

  /** The prompt is complete. */
  #take(id: string): void {
    const pending = this.#pending.get(id)
    this.#forget(id)
    if (pending === undefined || !pending.isPrompt) return
    const { session, at, texts } = pending
    const whole = [...texts.values()].join("\n")
    if (whole.trim() === "") return
    const content = () => cut(clean(whole), PROMPT_CODE_POINTS_MAX)
    this.#add({ kind: "prompt", id, session, at, content })
  }

  #forget(id: string): void {
    clearTimeout(this.#pending.get(id)?.timer)
    this.#pending.delete(id)
  }

  #add(event: Happened): void {
    if (event.id === "" || event.session === "") return
    if (this.#delivery.isKnown(`${event.kind} ${event.session} ${event.id}`)) return
    this.#delivery.add(() => this.#made(event))
  }

  #made(event: Happened): string | undefined {
    const content = event.content()
    if (content.trim() === "") return undefined
    return JSON.stringify({
      event_id: identified(event.id, BYTES_MAX.name),
      kind: event.kind,
      session_id: identified(event.session, BYTES_MAX.name),
      content,
      at: event.at,
      project: named(this.#place.project, BYTES_MAX.name) || undefined,
      tool: named(event.tool ?? "", BYTES_MAX.name) || undefined,
      status: named(event.status ?? "", BYTES_MAX.status) || undefined,
      directory: named(this.#place.directory, BYTES_MAX.directory) || undefined,
    })
  }
}

function mintedFor(event: unknown): string {
  const key = record(event)
  const id = minted.get(key) ?? randomUUID()
  minted.set(key, id)
  return id
}

/** A text without its secrets and without halves of characters, which no JSON of the daemon may hold. */
function clean(value: string): string {
  const isLong = value.length > LOOKED_AT_UNITS_MAX
  const kept = redact(isLong ? value.slice(0, LOOKED_AT_UNITS_MAX) : value)
  return wellFormed(isLong ? kept.slice(0, -NOT_KEPT_UNITS) : kept)
}

/** A name without its secrets, in so many bytes. */
export function named(value: string, bytesMax: number): string {
  return endOf(redact(startOf(value)), bytesMax)
}

/**
 * An id likewise; two that held secrets stay two, by a hash at their end. Other names need not, and a hash of a secret
 * could be guessed against.
 */
function identified(value: string, bytesMax: number): string {
  return endOf(redactName(startOf(value)), bytesMax)
}

function startOf(value: string): string {
  return wellFormed(value.slice(0, LOOKED_AT_UNITS_MAX).replaceAll("\0", ""))
}

/** The end of a name that is too long: it tells one from others better than the start does. */
function endOf(value: string, bytesMax: number): string {
  const bytes = Buffer.from(value)
  return bytes.length <= bytesMax ? value : bytes.subarray(-bytesMax).toString("utf8").replace(/^\uFFFD+/u, "")
}

function wellFormed(value: string): string {
  return value.replace(/[\uD800-\uDFFF]/gu, "\uFFFD")
}

function cut(value: string, codePointsMax: number): string {
  if (value.length <= codePointsMax) return value
  const codePoints = Array.from(value)
  return codePoints.length <= codePointsMax ? value : `${codePoints.slice(0, codePointsMax - 1).join("")}…`
}

function time(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : Date.now()
}

function remember(names: Set<string>, added: string): void {
  names.delete(added)
  names.add(added)
  if (names.size > REMEMBERED_MAX) {
    const [oldest] = names
    if (oldest !== undefined) names.delete(oldest)
  }
}
