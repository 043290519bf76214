/** A program in a network namespace that answers connections with its name and the address that it sees, and that asks others. */
import { type ChildProcess, spawn } from 'node:child_process'
import { inSpace } from './machine-commands.ts'

export type Asked = {
  readonly protocol?: 'tcp' | 'udp'
  readonly address: string
  readonly port: number
  /** Number of requests, one after the other. */
  readonly times?: number
  /** Source port; a UDP endpoint stays with the flow that it makes. */
  readonly fromPort?: number
  /** Path on an HTTP server; the answer is its body. */
  readonly path?: string
  /** Milliseconds to wait for an answer. Default: 1.5 s. Long enough for an expected answer of a busy machine. */
  readonly patienceMs?: number
}

export type EndpointProgram = {
  /** Answers on all addresses of the namespace with `NAME CLIENT`. */
  listen(port: number, protocol?: 'tcp' | 'udp'): Promise<void>
  /** What was answered, in order; a failure is its code (`ECONNREFUSED`), silence is `silent`. */
  ask(asked: Asked): Promise<readonly string[]>
  /** Asks one after the other until the function that this resolves with is called; it resolves with how often each answer came. */
  keepAsking(asked: Asked): Promise<() => Promise<ReadonlyMap<string, number>>>
  /** Ends and cannot answer any more, as a container that was killed. */
  kill(): void
}

type Ending = { teardown(end: () => unknown): unknown }

/** Ends with the test. `space`: as of `ip netns`; undefined: that of this host. `host`: of its addresses: `0.0.0.0`, or `::`. */
export function endpointProgram(
  t: Ending,
  name: string,
  space: string | undefined,
  host: '0.0.0.0' | '::' = '0.0.0.0',
): EndpointProgram {
  const [file = '', ...args] = inSpace(space, process.execPath, '-e', program, name, host)
  const child = spawn(file, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  t.teardown(() => child.kill('SIGKILL'))
  const request = requester(child)
  return {
    async listen(port, protocol = 'tcp') {
      await request({ listen: { port, protocol } })
    },
    ask: ({ protocol = 'tcp', times = 1, ...asked }) => request({ ask: { protocol, times, ...asked } }),
    async keepAsking({ protocol = 'tcp', ...asked }) {
      await request({ keep: { protocol, times: 1, ...asked } })
      return async () => counted(await request({ stop: true }))
    },
    kill: () => void child.kill('SIGKILL'),
  }
}

function counted(answers: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const answer of answers) counts.set(answer, (counts.get(answer) ?? 0) + 1)
  return counts
}

function requester(child: ChildProcess) {
  const waiting = new Map<number, (answers: readonly string[]) => void>()
  let last = 0
  child.on('message', (message) => {
    const { id, answers } = message as { readonly id: number; readonly answers: readonly string[] }
    waiting.get(id)?.(answers)
    waiting.delete(id)
  })
  return (request: object) =>
    new Promise<readonly string[]>((resolve, reject) => {
      const id = ++last
      waiting.set(id, resolve)
      child.send({ id, ...request }, (error) => error && reject(error))
    })
}

const program = `
const dgram = require('node:dgram')
const net = require('node:net')
const [, name, host] = process.argv
const udp = (address) => ({ type: address.includes(':') ? 'udp6' : 'udp4', ipv6Only: address.includes(':') })
const listen = ({ port, protocol }) => new Promise((resolve, reject) => {
  if (protocol === 'tcp') {
    const server = net.createServer((socket) => {
      socket.on('error', () => {})
      socket.end(name + ' ' + socket.remoteAddress)
    })
    server.on('error', reject).listen({ port, host, ipv6Only: true }, () => resolve([]))
    return
  }
  const socket = dgram.createSocket(udp(host))
  socket.on('message', (_, { address, port: to }) => socket.send(name + ' ' + address, to, address))
  socket.on('error', reject).bind(port, host, () => resolve([]))
})
// A program that got no turn for a while counts one step, and reads what arrived meanwhile before the next one.
const onSilence = (act, patienceMs) => {
  let steps = 0
  const timer = setInterval(() => { if (++steps * 100 >= patienceMs) { clearInterval(timer); act() } }, 100)
  return { restart: () => { steps = 0 }, end: () => clearInterval(timer) }
}
const askTcp = ({ address, port, fromPort, path, patienceMs = 1500 }) => new Promise((resolve) => {
  let text = ''
  const socket = net.connect({ host: address, port, localPort: fromPort })
  const silence = onSilence(() => { resolve('silent'); socket.destroy() }, patienceMs)
  socket.on('connect', silence.restart)
  socket.on('data', (data) => { text += data; silence.restart() })
  socket.on('error', ({ code }) => resolve(code))
  socket.on('close', silence.end)
  if (path) socket.write('GET ' + path + ' HTTP/1.0\\r\\n\\r\\n')
  socket.on('close', () => resolve((path ? text.replace(/^[^]*?\\r?\\n\\r?\\n/, '').trim() : text) || 'closed'))
})
const askUdp = ({ address, port, fromPort, patienceMs = 1500 }) => new Promise((resolve) => {
  const socket = dgram.createSocket(udp(address))
  const done = (answer) => { silence.end(); socket.close(); resolve(answer) }
  const silence = onSilence(() => done('silent'), patienceMs)
  socket.on('message', (data) => done(String(data)))
  socket.on('error', ({ code }) => done(code))
  socket.bind(fromPort ?? 0, () => socket.connect(port, address, () => socket.send('?')))
})
const ask = async (asked) => {
  const answers = []
  for (let time = 0; time < asked.times; time++) {
    answers.push(await (asked.protocol === 'tcp' ? askTcp : askUdp)(asked))
  }
  return answers
}
let kept
let isStopped = false
const keep = async (asked) => {
  const answers = []
  while (!isStopped) answers.push(...(await ask(asked)))
  return answers
}
process.on('message', async ({ id, listen: at, ask: asked, keep: again, stop }) => {
  if (again) {
    isStopped = false
    kept = keep(again)
    return process.send({ id, answers: [] })
  }
  if (stop) {
    isStopped = true
    return process.send({ id, answers: await kept })
  }
  process.send({ id, answers: await (at ? listen(at) : ask(asked)) })
})
process.on('disconnect', () => process.exit())
`
