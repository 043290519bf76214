/** A real Mosquitto on a free port of this machine: mutual TLS, own authority, everything in a folder of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openAuthority } from '../../certs/authority.ts'
import { issueAdmin, issueNode, issueServer } from '../../certs/issue.ts'
import { freezeProcess } from '../../daemon/testing/freeze-process.ts'
import { skipWithout } from '../../test/support/missing-parts.ts'
import { freePort } from './free-port.ts'

export type NodeKeys = { readonly ca: string; readonly certificate: string; readonly key: string }

export interface Mosquitto {
  readonly port: number
  readonly url: string
  /** A certificate that is accepted; with `lifeMs` < 0 one that has expired. */
  keysOf(nodeName: string, more?: { readonly nowMs?: number; readonly lifeMs?: number }): NodeKeys
  /** Keys of an administrator, whose user name is in an access list. */
  administratorKeys(): NodeKeys
  start(): Promise<void>
  /** Like a power cut: nothing is saved, no client is notified. */
  kill(): Promise<void>
  /** It takes connections and answers nothing, until it is killed. */
  freeze(): void
  /** Stops it and removes the folder. */
  remove(): Promise<void>
}

/** Debian puts it where only root's path looks. */
const program = '/usr/sbin/mosquitto'

/** Why there is no Mosquitto here, as a reason to skip a test; false when there is one. */
export const noMosquitto: string | false = skipWithout('mosquitto', existsSync(program))

/** Not started yet. The common names of certificates are the user names; `accessList`: in the form of mosquitto.conf(5), else all is allowed. */
export async function mosquitto({ accessList }: { readonly accessList?: string } = {}): Promise<Mosquitto> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-mosquitto-'))
  const authority = await openAuthority(join(folder, 'authority'), Date.now())
  const server = issueServer(authority, { names: ['localhost', '127.0.0.1'], nowMs: Date.now() })
  const port = await freePort()
  const path = (name: string) => join(folder, name)
  await writeFile(path('ca.crt'), authority.certificate)
  await writeFile(path('server.crt'), server.certificate)
  if (accessList !== undefined) await writeFile(path('access-list'), accessList, { mode: 0o600 })
  await writeFile(path('server.key'), server.key, { mode: 0o644 })
  await writeFile(
    path('mosquitto.conf'),
    [
      `listener ${port} 127.0.0.1`,
      `cafile ${path('ca.crt')}`,
      `certfile ${path('server.crt')}`,
      `keyfile ${path('server.key')}`,
      'require_certificate true',
      'use_identity_as_username true',
      'allow_anonymous false',
      'persistence false',
      ...(accessList === undefined ? [] : [`acl_file ${path('access-list')}`]),
      `user ${process.getuid?.() === 0 ? 'root' : 'mosquitto'}`,
      '',
    ].join('\n'),
  )
  let running: ChildProcess | undefined

  const kill = async () => {
    if (running === undefined) return
    const gone = once(running, 'exit')
    running.kill('SIGKILL')
    await gone
    running = undefined
  }

  return {
    port,
    url: `mqtts://localhost:${port}`,
    keysOf(nodeName, { nowMs = Date.now(), lifeMs } = {}) {
      const { certificate, key } = issueNode(authority, {
        nodeName,
        nowMs,
        ...(lifeMs === undefined ? {} : { lifeMs }),
      })
      return { ca: authority.certificate, certificate, key }
    },
    administratorKeys: () => ({ ca: authority.certificate, ...issueAdmin(authority, { nowMs: Date.now() }) }),
    async start() {
      running = spawn(program, ['-c', path('mosquitto.conf')], { stdio: 'ignore' })
      await listening(port)
    },
    kill,
    freeze: () => freezeProcess(running),
    async remove() {
      await kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function listening(port: number): Promise<void> {
  const deadline = Date.now() + 60_000
  while (Date.now() < deadline) {
    if (await answers(port)) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`No process listens on port ${port}`)
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
