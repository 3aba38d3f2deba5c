// The plugin's spool, driven from outside: each line is a verb and its arguments, each answer a line.
import { createInterface } from "node:readline"
import { pathToFileURL } from "node:url"

const [path, file] = process.argv.slice(2)
const { Spool } = await import(pathToFileURL(path).href)
const spool = new Spool(file)

// What a delivery does, with a daemon that stores everything: read the head, then take it off.
async function drain() {
  const head = await spool.head()
  await spool.take(head, head.end, head.lost)
  return head
}

const verbs = {
  append: (events) => spool.append(events.map((event) => JSON.stringify(event))),
  appendNow: (events, dropped = 0) => spool.appendNow(events.map((event) => JSON.stringify(event)), dropped),
  count: (dropped) => spool.count(dropped),
  head: () => spool.head(),
  take: (head, end, dropped) => spool.take(head, end, dropped),
  isEmpty: () => spool.isEmpty(),
  atRest: () => spool.atRest(),
  drain,
}

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, ...given] = JSON.parse(line)
  process.stdout.write(`${JSON.stringify((await verbs[verb](...given)) ?? null)}\n`)
}
