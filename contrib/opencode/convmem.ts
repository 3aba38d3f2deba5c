/**
 * The plugin as OpenCode loads it: each hook leaves word and returns; none ever throws.
 *
 * Nothing else may be exported here: OpenCode takes every export of this module for a plugin. The profile goes into the
 * context when a session is compacted, because that is when a model forgets what it was told; never with every turn.
 */

import type { Plugin } from "@opencode-ai/plugin"
import { basename } from "node:path"

import { profile } from "./daemon.ts"
import { Delivery } from "./delivery.ts"
import { Events, named } from "./events.ts"
import { settingsOf } from "./settings.ts"

const LAST_WAIT_MS = 1_000
const PROJECT_BYTES_MAX = 256

/** One for each daemon in this process, however often the plugin is loaded. */
const deliveries = new Map<string, Delivery>()

export const ConvmemPlugin: Plugin = async ({ directory, worktree }) => {
  const settings = settingsOf(process.env)
  if (settings === undefined) return {}
  const delivery = deliveries.get(settings.url) ?? new Delivery(settings)
  deliveries.set(settings.url, delivery)
  const project = basename(worktree ?? "") || basename(directory ?? "")
  const events = new Events(delivery, { project, directory: directory ?? "" })
  // What an earlier run could not send may wait on disk.
  delivery.wake()
  return {
    event: quiet(async ({ event }) => events.happened(event)),
    "tool.execute.after": quiet(async (input, output) => events.toolCalled(input, output)),
    "experimental.session.compacting": quiet(async (_input, output) => {
      const text = await profile(settings, named(project, PROJECT_BYTES_MAX))
      if (text !== "") output.context.push(text)
    }),
    dispose: quiet(async () => {
      events.close()
      await delivery.settled(LAST_WAIT_MS)
    }),
  }
}

/** A hook that fails is a hook that did nothing. */
function quiet<Given extends unknown[]>(hook: (...given: Given) => Promise<void>): (...given: Given) => Promise<void> {
  return async (...given) => {
    try {
      await hook(...given)
    } catch {
      return
    }
  }
}
