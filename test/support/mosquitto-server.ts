/** A real Mosquitto with the files that a controller writes for it, as Debian's package starts it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, realpath, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { freePort } from '../../agent/testing/free-port.ts'
import { peerControllerIdentity } from '../../api/identity.ts'
import { serverFiles } from '../../broker-controller/broker/mosquitto/server-files.ts'
import { type Authority, openAuthority } from '../../certs/authority.ts'
import { issueController, issueNode, issueServer } from '../../certs/issue.ts'
import { type RevokedCertificate, revocationList } from '../../certs/revocation-list.ts'
import { freezeProcess } from '../../daemon/testing/freeze-process.ts'
import { type Teardown, temporaryFolder } from './fleet.ts'
import { eventually } from './wait.ts'

const program = '/usr/sbin/mosquitto'

export type MosquittoProcess = {
  readonly pidFile: string
  /** `resumesSessions`: without the drop-in systemd/examples/mosquitto-sessions.conf. */
  start(options?: { readonly resumesSessions?: true }): Promise<void>
  /** Nothing is saved, and no client is notified. */
  kill(): Promise<void>
  /** Reads its files again. */
  reload(): void
  /** Its connections stay open, and it does nothing. */
  freeze(isFrozen: boolean): void
}

/** Not started. `folder`: with the files that a controller writes. */
export async function mosquittoProcess(t: Teardown, folder: string, port: number): Promise<MosquittoProcess> {
  const own = await temporaryFolder(t)
  const pidFile = join(own, 'mosquitto.pid')
  const main = join(own, 'mosquitto.conf')
  // As /etc/mosquitto/mosquitto.conf of Debian.
  const lines = [`pid_file ${pidFile}`, 'persistence true', `persistence_location ${own}/`, `include_dir ${folder}`]
  await writeFile(main, [...lines, 'user root', ''].join('\n'))
  let running: ChildProcess | undefined
  const kill = async () => {
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    const gone = once(running, 'exit')
    running.kill('SIGKILL')
    await gone
    running = undefined
  }
  t.teardown(kill)
  return {
    pidFile,
    async start({ resumesSessions } = {}) {
      const openssl = join(dirname(await realpath(join(folder, 'bramble.conf'))), 'openssl.cnf')
      const env = { ...process.env, ...(resumesSessions === undefined && { OPENSSL_CONF: openssl }) }
      const child = spawn(program, ['-c', main], { stdio: 'ignore', env })
      running = child
      await eventually(`Mosquitto on port ${port}`, () => {
        if (child.exitCode !== null) throw new Error(`Mosquitto ended with ${child.exitCode}`)
        return answers(port)
      })
    },
    kill,
    reload: () => void running?.kill('SIGHUP'),
    freeze: (isFrozen) => (isFrozen ? freezeProcess(running) : void running?.kill('SIGCONT')),
  }
}

export type MosquittoFleet = MosquittoProcess & {
  readonly port: number
  readonly authority: Authority
  readonly controller: { readonly ca: string; readonly certificate: string; readonly key: string }
  /** Another one at each call. */
  keysOf(node: string): { readonly ca: string; readonly certificate: string; readonly key: string }
  /** Writes the files for these nodes and revoked certificates. */
  write(nodes: readonly string[], revoked?: readonly RevokedCertificate[]): Promise<void>
}

/** A Mosquitto for these nodes, started. */
export async function mosquittoFleet(t: Teardown, nodes: readonly string[]): Promise<MosquittoFleet> {
  const folder = await temporaryFolder(t)
  const nowMs = Date.now()
  const authority = await openAuthority(join(folder, 'authority'), nowMs)
  const server = issueServer(authority, { names: ['localhost', '127.0.0.1'], nowMs })
  const port = await freePort()
  const files = join(folder, 'mosquitto')
  await mkdir(files)
  let lists = 0
  const write = async (names: readonly string[], revoked: readonly RevokedCertificate[] = []) => {
    lists += 1
    const facts = {
      ...{ folder: files, port, ...server, authorities: authority.trusted, nodes: names },
      // Clients use the later of two lists: each write is a second newer.
      revocations: revocationList(authority, { revoked, nowMs: nowMs - 60_000 + lists * 1_000 }),
      controller: peerControllerIdentity.user,
    }
    for (const { name, content } of serverFiles(facts)) await writeFile(join(files, name), content, { mode: 0o600 })
  }
  await write(nodes)
  const running = await mosquittoProcess(t, files, port)
  await running.start()
  return {
    ...running,
    port,
    authority,
    controller: { ca: authority.certificate, ...issueController(authority, { nowMs }) },
    keysOf: (nodeName) => ({ ca: authority.certificate, ...issueNode(authority, { nodeName, nowMs }) }),
    write,
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
