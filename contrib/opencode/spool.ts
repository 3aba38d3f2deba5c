/**
 * Events that wait on disk: one file of JSON lines, appended to at its end and taken from at its head, in order.
 *
 * Several processes share it, each change in turn. Taking from the head moves an offset in a small state file beside
 * it; the file itself is cut only when it is empty or mostly taken. The order of the two writes is such that a process
 * that dies between them leaves events to be sent twice, never one to be lost: the daemon stores each once. Two
 * processes may read the same head and send it; only the first takes it off. The spool is bounded in size and age; what
 * does not fit is dropped, oldest first, and counted.
 *
 * Rejected: a file for each event (a directory of thousands is slow to list in order), and rewriting the file for each
 * batch (16 MiB for every 256 events).
 *
 * A line is an event as it is sent, with one field more: when it was put here. How long it may wait counts from then.
 */

import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import { dirname } from "node:path"

import { record, type Waiting } from "./daemon.ts"
import { isTorn, makeDirectory, replace, writeWhole } from "./disk.ts"
import { inTurn, inTurnNow } from "./turn.ts"

const SPOOL_BYTES_MAX = 16 * 1024 * 1024
const SPOOL_AGE_MS_MAX = 30 * 24 * 3600 * 1000
const TAKEN_BYTES_MAX = 4 * 1024 * 1024
const HEAD_EVENTS_MAX = 256
const HEAD_BYTES_MAX = 1024 * 1024
const BREAK = 10

/** The oldest events, and where in the file each ends. */
export type Head = {
  readonly events: readonly string[]
  readonly ends: readonly number[]
  /** Where the head ends: beyond the last event, if lines that hold none follow. */
  readonly end: number
  /** Lines in it that will not be sent: too old, or torn. */
  readonly lost: number
  /** What the spool will say of itself when all of this is taken off. */
  readonly waiting: Waiting
  /** Which head this is; another one after each taking off. */
  readonly turn: string
}

type State = {
  offset: number
  /** The offset as it is written down, which may lie beyond the end of a file that was taken away. */
  written: number
  dropped: number
  droppedSince: number | null
  turn: string
}

export class Spool {
  readonly #file: string
  readonly #stateFile: string
  readonly #turnFile: string

  constructor(file: string) {
    this.#file = file
    this.#stateFile = file.replace(/\.jsonl$/, ".state")
    this.#turnFile = file.replace(/\.jsonl$/, ".turn")
  }

  /** Whether nothing waits. */
  isEmpty(): boolean {
    return sizeOf(this.#file) === this.#state().offset
  }

  /** What the spool says of itself when nothing waits in it. */
  atRest(): Waiting {
    const { dropped, droppedSince } = this.#state()
    return { depth: 0, oldest_at: null, dropped, dropped_since: droppedSince }
  }

  /** Put events behind all others. Throws if they could not be written; then none is in the file. */
  async append(events: readonly string[]): Promise<void> {
    makeDirectory(dirname(this.#file))
    await inTurn(this.#turnFile, () => this.#append(events))
  }

  /** The same for a process that ends, which counts what it has dropped too. */
  appendNow(events: readonly string[], dropped: number): void {
    makeDirectory(dirname(this.#file))
    inTurnNow(this.#turnFile, () => {
      if (events.length > 0) this.#append(events)
      if (dropped > 0) this.#count(dropped)
    })
  }

  /** The oldest events: so many that one request carries them. */
  async head(): Promise<Head> {
    return inTurn(this.#turnFile, () => {
      const state = this.#state()
      return headOf(this.#read(state.offset), state)
    })
  }

  /** Take off what ends at `end`, unless somebody has taken this head already; count what of it was dropped. */
  async take(head: Head, end: number, dropped: number): Promise<void> {
    await inTurn(this.#turnFile, () => {
      const state = this.#state()
      if (state.turn !== head.turn) return
      this.#moveTo(end, { ...state, ...counted(state, dropped) })
    })
  }

  /** Count events that were dropped before they came here. */
  async count(dropped: number): Promise<void> {
    await inTurn(this.#turnFile, () => this.#count(dropped))
  }

  #count(dropped: number): void {
    const state = this.#state()
    this.#write({ ...state, ...counted(state, dropped) })
  }

  #append(events: readonly string[]): void {
    const lines = Buffer.from(events.map(lineOf).join(""))
    this.#makeRoom(lines.length + 1)
    const descriptor = fs.openSync(this.#file, "a+", 0o600)
    try {
      const { size } = fs.fstatSync(descriptor)
      writeWhole(descriptor, size, isTorn(descriptor, size) ? Buffer.concat([Buffer.from("\n"), lines]) : lines)
    } finally {
      fs.closeSync(descriptor)
    }
  }

  /** Drop the oldest lines until so many bytes fit. */
  #makeRoom(bytes: number): void {
    const state = this.#state()
    const size = sizeOf(this.#file)
    // A file that somebody took away begins anew, and so does what is counted in it.
    if (size < state.written) this.#write(state)
    const excess = size - state.offset + bytes - SPOOL_BYTES_MAX
    if (excess <= 0) return
    const waiting = this.#read(state.offset)
    const found = waiting.indexOf(BREAK, excess - 1)
    const freed = found < 0 ? waiting.length : found + 1
    const dropped = lineCount(waiting.subarray(0, freed))
    this.#moveTo(state.offset + freed, { ...state, ...counted(state, dropped) })
  }

  #moveTo(offset: number, state: State): void {
    const turn = randomUUID()
    if (offset >= sizeOf(this.#file)) {
      this.#write({ ...state, offset: 0, turn })
      fs.truncateSync(this.#file, 0)
    } else if (offset > TAKEN_BYTES_MAX) {
      const rest = this.#read(offset)
      this.#write({ ...state, offset: 0, turn })
      replace(this.#file, rest)
    } else {
      this.#write({ ...state, offset, turn })
    }
  }

  #read(offset: number): Buffer {
    const descriptor = fs.openSync(this.#file, "r")
    try {
      const bytes = Buffer.alloc(Math.max(0, fs.fstatSync(descriptor).size - offset))
      let length = 0
      for (let read = -1; read !== 0 && length < bytes.length; length += read) {
        read = fs.readSync(descriptor, bytes, length, bytes.length - length, offset + length)
      }
      return bytes.subarray(0, length)
    } finally {
      fs.closeSync(descriptor)
    }
  }

  #state(): State {
    let facts: Record<string, unknown> = {}
    try {
      facts = record(JSON.parse(fs.readFileSync(this.#stateFile, "utf8")))
    } catch {
      // No state, or one that is damaged: everything in the file is to be sent.
    }
    const since = whole(facts.dropped_since)
    const isForgotten = since === undefined || Date.now() - since > SPOOL_AGE_MS_MAX
    const written = whole(facts.offset) ?? 0
    return {
      offset: written > sizeOf(this.#file) ? 0 : written,
      written,
      dropped: isForgotten ? 0 : (whole(facts.dropped) ?? 0),
      droppedSince: isForgotten ? null : since,
      turn: typeof facts.turn === "string" ? facts.turn : "",
    }
  }

  #write(state: State): void {
    const { offset, dropped, droppedSince, turn } = state
    replace(this.#stateFile, Buffer.from(JSON.stringify({ offset, dropped, dropped_since: droppedSince, turn })))
  }
}

function headOf(bytes: Buffer, state: State): Head {
  const events: string[] = []
  const ends: number[] = []
  const { offset, turn } = state
  let lost = 0
  let end = 0
  while (end < bytes.length && events.length < HEAD_EVENTS_MAX) {
    const found = bytes.indexOf(BREAK, end)
    const next = found < 0 ? bytes.length : found + 1
    if (events.length > 0 && next > HEAD_BYTES_MAX) break
    const line = bytes.toString("utf8", end, found < 0 ? next : found)
    end = next
    const said = saidBy(line)
    if (said === undefined || Date.now() - said.since > SPOOL_AGE_MS_MAX) {
      lost += line === "" ? 0 : 1
    } else {
      events.push(said.event)
      ends.push(offset + end)
    }
  }
  const rest = bytes.subarray(end)
  const first = rest.indexOf(BREAK)
  const { dropped, droppedSince } = counted(state, lost)
  const oldest = saidBy(rest.toString("utf8", 0, first < 0 ? rest.length : first))?.at ?? null
  const waiting = { depth: lineCount(rest), oldest_at: oldest, dropped, dropped_since: droppedSince }
  return { events, ends, end: offset + end, lost, waiting, turn }
}

/** The line of an event, one JSON object, that is put here now. */
function lineOf(event: string): string {
  return `${event.slice(0, -1)},"spooled_at":${Date.now()}}\n`
}

/** The event of a line, when it happened and since when it waits; undefined if the line holds none. */
function saidBy(line: string): { event: string; at: number; since: number } | undefined {
  try {
    const { spooled_at, ...event } = record(JSON.parse(line))
    const at = whole(event.at)
    if (typeof event.event_id !== "string" || at === undefined) return undefined
    return { event: JSON.stringify(event), at, since: whole(spooled_at) ?? at }
  } catch {
    return undefined
  }
}

function counted(state: State, dropped: number): { dropped: number; droppedSince: number | null } {
  if (dropped === 0) return { dropped: state.dropped, droppedSince: state.droppedSince }
  return { dropped: state.dropped + dropped, droppedSince: state.droppedSince ?? Date.now() }
}

function lineCount(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(BREAK); at >= 0; at = bytes.indexOf(BREAK, at + 1)) count += 1
  return bytes.length > 0 && bytes.at(-1) !== BREAK ? count + 1 : count
}

/** How long a file is; what is none or cannot be looked at holds nothing for us. */
function sizeOf(file: string): number {
  try {
    const found = fs.statSync(file)
    return found.isFile() ? found.size : 0
  } catch {
    return 0
  }
}

function whole(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
