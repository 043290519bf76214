/**
 * Runs a browser in a network namespace of its own, where one address of this host is reached and nothing else. Networks of other tests
 * come and go on this host, and a browser drops all its connections whenever it sees that (ERR_NETWORK_CHANGED).
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { commandOrThrow } from './machine-commands.ts'
import { isRoot } from './missing-parts.ts'

/** As a `URL` has it. */
type HostAddress = { readonly hostname: string; readonly port: string }

const socketIn = (folder: string) => join(folder, 'host.sock')

/** A command line that runs `command` in the namespace, with the descriptors 3 and 4 of its own. */
export function commandInSpace(
  folder: string,
  address: HostAddress,
  command: readonly string[],
): readonly [string, ...string[]] {
  const asRoot = isRoot() ? [] : ['--user', '--map-root-user']
  const program = [process.execPath, fileURLToPath(import.meta.url), folder, address.hostname, address.port, ...command]
  return ['unshare', ...asRoot, '--net', ...program]
}

/** Leads the connections of the namespace to this address of the host, by a socket in the folder. */
export async function hostEnd(folder: string, address: HostAddress): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (socket) =>
    couple(socket, connect({ host: address.hostname, port: Number(address.port), allowHalfOpen: true })),
  )
  await once(server.listen(socketIn(folder)), 'listening')
  return server
}

/** Each half of both ends by itself, as TCP has it. */
function couple(one: Socket, other: Socket): void {
  pipeline(one, other, one, () => undefined)
}

async function runInSpace(
  folder: string,
  address: HostAddress,
  [file = '', ...args]: readonly string[],
): Promise<number> {
  await commandOrThrow('ip', ['link', 'set', 'lo', 'up'])
  const server = createServer({ allowHalfOpen: true }, (socket) =>
    couple(socket, connect({ path: socketIn(folder), allowHalfOpen: true })),
  )
  await once(server.listen(Number(address.port), address.hostname), 'listening')
  const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'ignore', 3, 4] })
  const [code] = await once(child, 'close')
  return code ?? 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder = '', hostname = '', port = '', ...command] = process.argv.slice(2)
  process.exit(await runInSpace(folder, { hostname, port }, command))
}
