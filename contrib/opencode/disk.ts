/**
 * What a spool does to the disk: each step leaves a whole file behind or fails.
 */
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import { dirname } from "node:path"

const BREAK = 10

/**
 * Make a directory and those above it that are missing, one by one: asked for all of them at once, Node 20 tries
 * without end where the system says that a parent is missing though it is there (below /proc).
 */
export function makeDirectory(path: string): void {
  if (fs.existsSync(path)) return
  const above = dirname(path)
  if (above !== path) makeDirectory(above)
  try {
    fs.mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process may have been quicker.
    if (!fs.existsSync(path)) throw error
  }
}

/** Whether the last line was never finished: whoever wrote it died, or the disk was full. */
export function isTorn(descriptor: number, size: number): boolean {
  const last = Buffer.alloc(1)
  return size > 0 && fs.readSync(descriptor, last, 0, 1, size - 1) === 1 && last[0] !== BREAK
}

/** Write all of it at the end of the file, or leave the file as it was. */
export function writeWhole(descriptor: number, size: number, bytes: Buffer): void {
  try {
    for (let written = 0; written < bytes.length; ) written += fs.writeSync(descriptor, bytes, written)
  } catch (error) {
    fs.ftruncateSync(descriptor, size)
    throw error
  }
}

export function replace(file: string, bytes: Buffer): void {
  const aside = `${file}.${randomUUID()}`
  try {
    fs.writeFileSync(aside, bytes, { mode: 0o600 })
    fs.renameSync(aside, file)
  } catch (error) {
    fs.rmSync(aside, { force: true })
    throw error
  }
}
