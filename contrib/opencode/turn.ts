/**
 * One process at a time: a file that only its maker could make stands while somebody works on what it guards.
 *
 * What is done in turn is synchronous and takes milliseconds, so a file that is older than seconds was left by a
 * process that died, and is taken away.
 */

import { randomUUID } from "node:crypto"
import { closeSync, linkSync, openSync, renameSync, statSync, unlinkSync } from "node:fs"

const LEFT_BEHIND_MS = 3_000
const PAUSE_MS = 5
const WAIT_MS = 4_000
const WAIT_AT_EXIT_MS = 200

/** The turn did not come in time. */
export class NoTurn extends Error {}

/** Do something in turn. Throws what it throws, and NoTurn. */
export async function inTurn<Result>(path: string, action: () => Result): Promise<Result> {
  const until = Date.now() + WAIT_MS
  while (!taken(path)) {
    if (Date.now() > until) throw new NoTurn(`${path} is held by another process`)
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  return released(path, action)
}

/** The same for a process that ends: it waits without letting anything else run, and not long. */
export function inTurnNow<Result>(path: string, action: () => Result): Result {
  const until = Date.now() + WAIT_AT_EXIT_MS
  const cell = new Int32Array(new SharedArrayBuffer(4))
  while (!taken(path)) {
    if (Date.now() > until) throw new NoTurn(`${path} is held by another process`)
    Atomics.wait(cell, 0, 0, PAUSE_MS)
  }
  return released(path, action)
}

function released<Result>(path: string, action: () => Result): Result {
  try {
    return action()
  } finally {
    ignoring("ENOENT", () => unlinkSync(path))
  }
}

function taken(path: string): boolean {
  const isMade = ignoring("EEXIST", () => closeSync(openSync(path, "wx", 0o600)))
  if (!isMade) ignoring("ENOENT", () => takeAwayIfLeftBehind(path))
  return isMade
}

function takeAwayIfLeftBehind(path: string): void {
  if (!isLeftBehind(path)) return
  const aside = `${path}.${randomUUID()}`
  renameSync(path, aside)
  // Another process may have been quicker, and this one is its: it goes back, unless a third has made one meanwhile.
  if (!isLeftBehind(aside)) ignoring("EEXIST", () => linkSync(aside, path))
  unlinkSync(aside)
}

function isLeftBehind(path: string): boolean {
  return Math.abs(Date.now() - statSync(path).mtimeMs) > LEFT_BEHIND_MS
}

/** Do it; false if it failed with this code of the system. */
function ignoring(code: string, action: () => void): boolean {
  try {
    action()
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === code) return false
    throw error
  }
}
