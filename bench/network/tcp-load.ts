/**
 * The program of `kills.ts` within a network namespace: a server that answers one request of each connection and closes it, or a
 * client that opens connections at a rate, however long the earlier ones take. Its parent names which one in its first message.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'

/** `serve` answers each connection; `load` connects until the parent sends a message. */
type Order =
  | { readonly serve: { readonly port: number; readonly answer: string } }
  | { readonly load: { readonly address: string; readonly port: number; readonly rate: number } }

/** What a client has seen. */
export type LoadFigures = {
  readonly made: number
  /** How often each failure came, by its code; `silent`: no answer within `patienceMs`. */
  readonly failures: Readonly<Record<string, number>>
  /** How often each answer came. */
  readonly answers: Readonly<Record<string, number>>
  /** From the first connection until the end of the last one. */
  readonly seconds: number
  /** From the call of connect until the end of the answer. */
  readonly medianMs: number
  readonly slowest100thMs: number
  readonly longestMs: number
}

export type RunningLoad = { stop(): Promise<LoadFigures> }

type Ending = { teardown(end: () => Promise<unknown>): void }

const tickMs = 10
/** What else the machine does, the agents too, leaves time for the connections: less would be a slower client, not one that fails. */
const niceness = -10
/** A lost SYN is sent again after 1, 3 and 7 s. */
const patienceMs = 15_000

/** `inside`: the command line before the program's own, as `nsenter --net=…`. */
export async function startServer(
  ending: Ending,
  inside: readonly string[],
  port: number,
  answer: string,
): Promise<void> {
  await once(ordered(ending, inside, { serve: { port, answer } }), 'message')
}

/** Resolves once the first connections are on their way. */
export async function startLoad(
  ending: Ending,
  inside: readonly string[],
  asked: { readonly address: string; readonly port: number; readonly rate: number },
): Promise<RunningLoad> {
  const child = ordered(ending, inside, { load: asked })
  await once(child, 'message')
  return {
    async stop() {
      child.send('stop')
      return (await once(child, 'message'))[0] as LoadFigures
    },
  }
}

function ordered(ending: Ending, inside: readonly string[], order: Order): ChildProcess {
  const [file = '', ...args] = [...inside, process.execPath, fileURLToPath(import.meta.url)]
  const child = spawn(file, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const ended = once(child, 'exit')
  ending.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  child.send(order)
  return child
}

function serve(port: number, answer: string): void {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end(answer))
  })
  server.listen({ port, host: '0.0.0.0', backlog: 4096 }, () => process.send?.('listening'))
}

async function load(address: string, port: number, rate: number): Promise<LoadFigures> {
  const counts = { failures: new Map<string, number>(), answers: new Map<string, number>() }
  const times: number[] = []
  const open = new Set<Promise<void>>()
  let made = 0
  const one = async () => {
    const beganMs = performance.now()
    const { failure, answer = '' } = await asked(address, port)
    if (failure !== undefined) return increment(counts.failures, failure)
    times.push(performance.now() - beganMs)
    increment(counts.answers, answer)
  }
  const startMs = performance.now()
  const ticks = setInterval(() => {
    for (const due = ((performance.now() - startMs) * rate) / 1000; made < due; made++) {
      const connection = one().finally(() => open.delete(connection))
      open.add(connection)
    }
  }, tickMs)
  const stop = once(process, 'message')
  process.send?.('begun')
  await stop
  clearInterval(ticks)
  await Promise.all(open)
  const seconds = (performance.now() - startMs) / 1000
  times.sort((a, b) => a - b)
  const at = (part: number) => times[Math.min(times.length - 1, Math.floor(times.length * part))] ?? Number.NaN
  return {
    made,
    failures: Object.fromEntries(counts.failures),
    answers: Object.fromEntries(counts.answers),
    seconds,
    medianMs: at(0.5),
    slowest100thMs: at(0.99),
    longestMs: at(1),
  }
}

function asked(
  address: string,
  port: number,
): Promise<{ readonly failure?: string | undefined; readonly answer?: string }> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port })
    const silence = setTimeout(() => {
      resolve({ failure: 'silent' })
      socket.destroy()
    }, patienceMs)
    let text = ''
    socket.on('data', (data) => {
      text += data
    })
    socket.on('error', (error) => resolve({ failure: 'code' in error ? String(error.code) : error.message }))
    socket.on('close', () => {
      clearTimeout(silence)
      resolve(text === '' ? { failure: 'closed' } : { answer: text })
    })
    socket.write('who')
  })
}

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

async function obey(): Promise<void> {
  process.on('disconnect', () => process.exit())
  setPriority(niceness)
  const order = (await once(process, 'message'))[0] as Order
  if ('serve' in order) return serve(order.serve.port, order.serve.answer)
  const { address, port, rate } = order.load
  process.send?.(await load(address, port, rate))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await obey()
