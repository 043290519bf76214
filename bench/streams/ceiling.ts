/**
 * What Node.js and TLS themselves cost: one TLS connection between two processes, and a bare relay of as many processes as a stream
 * of Bramble passes: a Unix socket in place of Docker, an agent, a controller, a client. `bench/streams.ts` compares with them.
 * Run by itself it is one of these processes.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import {
  type AddressInfo,
  connect as connectPlain,
  createServer as createPlain,
  type Server,
  type Socket,
} from 'node:net'
import { join } from 'node:path'
import { connect, createServer } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { openAuthority } from '../../certs/authority.ts'
import { issueServer } from '../../certs/issue.ts'

/**
 * Role of a process that relays or sends. Paths of Unix sockets, TLS ports on 127.0.0.1; without one, the process opens
 * one.
 */
type Role =
  | { readonly sends: number; readonly at?: string; readonly tls?: Identity }
  | { readonly agentFrom: string; readonly to: number }
  | { readonly controller: Identity }
type Identity = { readonly cert: string; readonly key: string }
type Ports = readonly number[]

export type Ceiling = {
  /** From one process to another, in MiB/s. */
  plainTls(mib: number): Promise<number>
  /**
   * The same through both relays. `measure` gets the processes of the controller and the agent. The settings with which the agent
   * is started change little here, and are left out.
   */
  relay<T>(mib: number, measure: (pids: readonly number[], run: () => Promise<number>) => Promise<T>): Promise<T>
}

const itself = fileURLToPath(import.meta.url)
let relays = 0
const slice = Buffer.alloc(64 * 1024)

if (process.argv[1] === itself) {
  process.once('message', (role: Role) => void play(role))
  // The process that measures has ended, perhaps without ending this one.
  process.once('disconnect', () => process.exit())
}

/** Certificates and sockets are in `folder`. */
export async function streamCeiling(folder: string): Promise<Ceiling> {
  const authority = await openAuthority(join(folder, 'ceiling'), Date.now())
  const { certificate: cert, key } = issueServer(authority, { names: ['localhost'], nowMs: Date.now() })
  const tls = { cert, key }
  return {
    plainTls: (mib) =>
      together(async (start) => {
        const [port = 0] = (await start({ sends: mib, tls })).ports
        return receive(port)
      }),
    relay: (mib, measure) =>
      together(async (start) => {
        const at = join(folder, `ceiling-${++relays}.sock`)
        await start({ sends: mib, at })
        const controller = await start({ controller: tls })
        const [forAgent = 0, forClient = 0] = controller.ports
        const agent = await start({ agentFrom: at, to: forAgent })
        return measure([controller.pid, agent.pid], () => receive(forClient))
      }),
  }
}

type Started = { readonly pid: number; readonly ports: Ports }
type Start = (role: Role) => Promise<Started>

/** Ends the processes that `run` has started. */
async function together<T>(run: (start: Start) => Promise<T>): Promise<T> {
  const children: ChildProcess[] = []
  try {
    return await run(async (role) => {
      const child = fork(itself)
      children.push(child)
      const answered = once(child, 'message')
      child.send(role)
      const [ports] = (await answered) as [Ports]
      return { pid: child.pid ?? 0, ports }
    })
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
}

/** MiB per second; everything is ready to send before. */
async function receive(port: number): Promise<number> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const beganMs = performance.now()
  let bytes = 0
  for await (const piece of socket) bytes += (piece as Buffer).length
  return bytes / 2 ** 20 / ((performance.now() - beganMs) / 1000)
}

async function play(role: Role): Promise<void> {
  if ('sends' in role) {
    const { sends, at, tls } = role
    const give = (socket: Socket) => void send(socket, sends).catch(() => undefined)
    const server = tls === undefined ? createPlain(give) : createServer(tls, give)
    return answer([await listening(server, at)])
  }
  if ('controller' in role) {
    const agents = createServer(role.controller)
    const clients = createServer(role.controller)
    const both = Promise.all([once(agents, 'secureConnection'), once(clients, 'secureConnection')])
    answer([await listening(agents), await listening(clients)])
    const [[agent], [client]] = (await both) as [[Socket], [Socket]]
    agent.pipe(client)
    return
  }
  const controller = connect({ port: role.to, host: '127.0.0.1', rejectUnauthorized: false })
  await once(controller, 'secureConnect')
  connectPlain(role.agentFrom).pipe(controller)
  answer([])
}

async function send(socket: Socket, mib: number): Promise<void> {
  for (let left = mib * 2 ** 20; left > 0; left -= slice.length) {
    if (!socket.write(slice)) await once(socket, 'drain')
  }
  socket.end()
}

async function listening(server: Server, path?: string): Promise<number> {
  server.listen(path === undefined ? { port: 0, host: '127.0.0.1' } : { path })
  await once(server, 'listening')
  return path === undefined ? (server.address() as AddressInfo).port : 0
}

function answer(ports: Ports): void {
  process.send?.(ports)
}
