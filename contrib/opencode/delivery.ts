/**
 * The way of events to the daemon: in order, once, and never at the host's cost.
 *
 * A hook leaves a promise of an event and goes on; what it takes to make the event, to send it or to put it on disk
 * happens later. One request is under way at a time. While events wait on disk, new ones go behind them. When the
 * daemon is away the pauses grow to minutes, with one timer that does not keep the host alive. What is not stored when
 * the host ends is put on disk in its last moment. Where the disk cannot be used at all, events go to the daemon as if
 * there were none.
 *
 * Each request says how many events were dropped, and one without events does where no other is left to say it.
 *
 * The host may load a plugin several times into one process; all of them share the delivery to one daemon.
 */

import { capture, type Outcome, type Waiting } from "./daemon.ts"
import { type Head, Spool } from "./spool.ts"
import type { Settings } from "./settings.ts"
import { NoTurn } from "./turn.ts"

/** Makes an event's JSON text, or nothing if there turns out to be nothing to capture. */
export type Promised = () => string | undefined

type Sent = { readonly count: number; readonly dropped: number; readonly pauseMs?: number }

const REQUEST_EVENTS_MAX = 256
const REQUEST_BYTES_MAX = 1024 * 1024
const MEMORY_EVENTS_MAX = 4_000
// Looking for secrets in long texts takes milliseconds, and the host has other things to do meanwhile.
const MADE_AT_ONCE = 8
const PAUSE_MS_MIN = 1_000
const PAUSE_MS_MAX = 5 * 60_000
const REMEMBERED_MAX = 1_000

export class Delivery {
  readonly #settings: Settings
  readonly #spool: Spool | undefined
  readonly #endings = new Set<() => void>()
  readonly #seen = new Set<string>()
  #promised: Promised[] = []
  #ready: string[] = []
  #sending: string[] = []
  #dropped = 0
  /** So many were dropped as far as the daemon knows. */
  #told = 0
  #failures = 0
  #isAwake = false
  #isRunning = false
  #hasNews = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #settled: Array<() => void> = []

  constructor(settings: Settings) {
    this.#settings = settings
    this.#spool = settings.spool === undefined ? undefined : new Spool(settings.spool)
    process.once("exit", () => this.#putOnDisk())
  }

  /** Whether something was captured before, among the last thousand; it counts as captured from now on. */
  isKnown(name: string): boolean {
    if (this.#seen.has(name)) return true
    this.#seen.add(name)
    if (this.#seen.size > REMEMBERED_MAX) {
      const [oldest] = this.#seen
      if (oldest !== undefined) this.#seen.delete(oldest)
    }
    return false
  }

  /** Have an event made and sent, soon. */
  add(event: Promised): void {
    this.#promised.push(event)
    if (this.#promised.length > MEMORY_EVENTS_MAX) {
      this.#promised.shift()
      this.#dropped += 1
    }
    this.wake()
  }

  /** Have this called when the process ends, before what is left is put on disk; undone by what is returned. */
  beforeEnd(action: () => void): () => void {
    this.#endings.add(action)
    return () => this.#endings.delete(action)
  }

  /** See to what waits, unless that goes on already. */
  wake(): void {
    if (this.#isAwake) return
    this.#isAwake = true
    setImmediate(() => {
      this.#isAwake = false
      this.#make(MADE_AT_ONCE)
      if (this.#promised.length > 0) this.wake()
      this.#hasNews = true
      if (!this.#isRunning) void this.#run()
    })
  }

  /** Wait until nothing is under way any more, but no longer than this. What could not be sent is on disk then. */
  async settled(waitMs: number): Promise<void> {
    if (!this.#isRunning && !this.#isAwake) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        this.#putOnDisk()
        resolve()
      }, waitMs)
      this.#settled.push(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    try {
      while (await this.#step()) continue
    } catch {
      // Whatever it was, the host has nothing to do with it; what waits is tried again after the pause.
      this.#pause(0)
    } finally {
      this.#isRunning = false
      // What came while the last step was under way has not been looked at.
      if (this.#hasNews) this.wake()
      if (!this.#isAwake) for (const resolve of this.#settled.splice(0)) resolve()
    }
  }

  /** One request or one look at the disk; false if there is nothing more to do now. */
  async #step(): Promise<boolean> {
    this.#hasNews = false
    const isPaused = this.#timer !== undefined
    const spool = this.#spool
    if (spool !== undefined && (isPaused || !spool.isEmpty())) {
      await this.#spill(spool)
      const head = isPaused ? undefined : await readable(spool)
      if (head !== undefined) return this.#sendHead(spool, head)
    }
    if (isPaused) return false
    if (this.#ready.length === 0) return this.#tell(this.#waiting(spool?.atRest()))
    this.#sending = this.#ready.splice(0, requestLength(this.#ready))
    const sent = await this.#send(this.#sending, this.#waiting(spool?.atRest()))
    this.#dropped += sent.dropped
    this.#ready.unshift(...this.#sending.splice(sent.count))
    this.#sending = []
    if (sent.pauseMs === undefined) return true
    this.#pause(sent.pauseMs)
    return spool !== undefined
  }

  #make(count: number): void {
    for (const promised of this.#promised.splice(0, count)) {
      try {
        const event = promised()
        if (event !== undefined) this.#ready.push(event)
      } catch {
        // A shape that nobody has seen yet: there is no event in it.
      }
    }
    const excess = this.#ready.length - MEMORY_EVENTS_MAX
    if (excess > 0) {
      this.#ready.splice(0, excess)
      this.#dropped += excess
    }
  }

  /** Put what is ready behind what waits on disk. Where the disk takes nothing, it stays in memory. */
  async #spill(spool: Spool): Promise<void> {
    if (this.#ready.length === 0) return
    this.#sending = this.#ready.splice(0)
    try {
      await spool.append(this.#sending)
      this.#sending = []
      await this.#tellDropped(spool)
    } catch {
      this.#ready.unshift(...this.#sending.splice(0))
    }
  }

  async #tellDropped(spool: Spool): Promise<void> {
    const dropped = this.#dropped
    if (dropped === 0) return
    await spool.count(dropped)
    this.#dropped -= dropped
  }

  async #sendHead(spool: Spool, head: Head): Promise<boolean> {
    const sent = await this.#send(head.events, this.#waiting(head.waiting))
    const isWhole = sent.count === head.events.length
    const end = isWhole ? head.end : head.ends[sent.count - 1]
    if (end !== undefined) await spool.take(head, end, sent.dropped + (isWhole ? head.lost : 0))
    if (sent.pauseMs !== undefined) this.#pause(sent.pauseMs)
    return sent.pauseMs === undefined
  }

  /** How many of the events are done with, how many of these were dropped, and for how long to let the daemon be. */
  async #send(events: readonly string[], waiting: Waiting): Promise<Sent> {
    if (events.length === 0) return { count: 0, dropped: 0 }
    const outcome: Outcome = await capture(this.#settings, events, waiting)
    if (outcome.kind === "away") return { count: 0, dropped: 0, pauseMs: outcome.retryAfterMs }
    this.#failures = 0
    if (outcome.kind === "stored") {
      this.#told = waiting.dropped
      return { count: events.length, dropped: outcome.refused }
    }
    if (events.length === 1) return { count: 1, dropped: 1 }
    // The daemon takes none of them, so each one speaks for itself.
    let dropped = 0
    for (const [count, event] of events.entries()) {
      const single = await this.#send([event], waiting)
      if (single.pauseMs !== undefined) return { count, dropped, pauseMs: single.pauseMs }
      dropped += single.dropped
    }
    return { count: events.length, dropped }
  }

  /** Say how many were dropped if nothing else is there to say it; there is nothing more to do then. */
  async #tell(waiting: Waiting): Promise<false> {
    if (waiting.dropped > this.#told) {
      const outcome = await capture(this.#settings, [], waiting)
      if (outcome.kind === "away") this.#pause(outcome.retryAfterMs)
      else this.#told = waiting.dropped
    }
    return false
  }

  #waiting(spool: Waiting | undefined): Waiting {
    const known = spool ?? { depth: 0, oldest_at: null, dropped: 0, dropped_since: null }
    const dropped = known.dropped + this.#dropped
    return { ...known, dropped, dropped_since: known.dropped_since ?? (dropped > 0 ? Date.now() : null) }
  }

  #pause(retryAfterMs: number): void {
    if (this.#timer !== undefined) return
    const grown = PAUSE_MS_MIN * 2 ** Math.min(this.#failures, 16)
    this.#failures += 1
    const pauseMs = Math.min(PAUSE_MS_MAX, Math.max(grown, retryAfterMs))
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.wake()
    }, pauseMs)
    this.#timer.unref?.()
  }

  #putOnDisk(): void {
    try {
      for (const action of this.#endings) action()
      this.#make(this.#promised.length)
      // What is under way may arrive all the same; the daemon stores it once.
      const left = [...this.#sending, ...this.#ready]
      if (this.#spool === undefined || (left.length === 0 && this.#dropped === 0)) return
      this.#spool.appendNow(left, this.#dropped)
      this.#ready = []
      this.#dropped = 0
    } catch {
      // The process ends; there is nobody to tell.
    }
  }
}

/** The head of a spool; nothing if the disk does not let it be read, for then nobody takes it off either. */
async function readable(spool: Spool): Promise<Head | undefined> {
  try {
    return await spool.head()
  } catch (error) {
    if (error instanceof NoTurn) throw error
    return undefined
  }
}

/** How many of these one request carries. */
function requestLength(events: readonly string[]): number {
  let bytes = 0
  let count = 0
  for (const event of events.slice(0, REQUEST_EVENTS_MAX)) {
    bytes += Buffer.byteLength(event)
    if (count > 0 && bytes > REQUEST_BYTES_MAX) break
    count += 1
  }
  return count
}
