// The part of OpenCode that a plugin sees: loads the module as OpenCode does, calls its hooks, and reads no answer.
// Lines of JSON come in, each is one call; one line goes out for each: how long the hook took, and what it left.
import { performance } from "node:perf_hooks"
import { createInterface } from "node:readline"
import { pathToFileURL } from "node:url"

const [path, directory, worktree] = process.argv.slice(2)
const failures = []
process.on("unhandledRejection", (reason) => failures.push(String(reason)))
process.on("uncaughtException", (error) => failures.push(String(error)))

const module = await import(pathToFileURL(path).href)
const hooks = []
for (const plugin of new Set(Object.values(module))) {
  hooks.push(await plugin({ directory, worktree, project: { id: "p" }, client: {} }))
}

async function call({ hook, input, output, times = 1 }) {
  const tookMs = []
  for (let number = 0; number < times; number += 1) {
    for (const each of hooks) {
      if (!each[hook]) continue
      const begun = performance.now()
      const ending = each[hook](input, output)
      tookMs.push(performance.now() - begun)
      await ending
    }
  }
  return { took_ms: tookMs, output, failures }
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line)
  if (asked.exit) process.exit(0)
  process.stdout.write(`${JSON.stringify(await call(asked))}\n`)
}
