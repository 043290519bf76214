/** Real members of etcd on free ports of this machine, with their data in a folder of their own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../agent/testing/free-port.ts'
import { openAuthority } from '../../certs/authority.ts'
import { issueAdmin, issueServer } from '../../certs/issue.ts'
import { freezeProcess } from '../../daemon/testing/freeze-process.ts'
import { skipWithout } from './missing-parts.ts'
import { eventually } from './wait.ts'

/** The folder of another etcd, in place of the installed one. */
const ownFolder = process.env['BRAMBLE_TEST_ETCD']
const program = join(ownFolder || '/usr/bin', 'etcd')
if (ownFolder && !existsSync(program)) throw new Error(`BRAMBLE_TEST_ETCD: there is no program ${program}`)

/** Why there is no etcd here, as a reason to skip a test; false when there is one. */
export const noEtcd: string | false = skipWithout('etcd', existsSync(program))

export interface EtcdMember {
  /** `http://127.0.0.1:PORT`, or with https. */
  readonly url: string
  readonly port: number
  /** PID of its process, while it runs. */
  readonly pid: number | undefined
  /** Again on its data, if it was there before. Resolves when it takes part in a cluster that has a leader. */
  start(): Promise<void>
  /** Like a power cut, but for what the kernel has not yet written to the disk. */
  kill(): Promise<void>
  /** It keeps its connections and answers nothing, until `thaw`. */
  freeze(): void
  thaw(): void
  isLeader(): Promise<boolean>
}

export type EtcdCluster = {
  readonly members: readonly EtcdMember[]
  readonly urls: readonly string[]
  /** PEM, and the paths of files with it; without `tls`: undefined. */
  readonly tls?: {
    readonly ca: Buffer
    readonly certificate: Buffer
    readonly key: Buffer
    readonly files: { readonly ca: string; readonly certificate: string; readonly key: string }
  }
  remove(): Promise<void>
}

/** All members are started. `tls`: clients need a certificate. `flags`: more of etcd's. */
export async function etcdCluster({
  size = 1,
  tls = false,
  flags = [],
}: {
  readonly size?: number
  readonly tls?: boolean
  readonly flags?: readonly string[]
} = {}): Promise<EtcdCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-etcd-'))
  const security = tls ? await issue(folder) : undefined
  const places: Place[] = []
  for (let i = 0; i < size; i++) {
    places.push({ name: `m${i}`, client: await freePort(), peer: await freePort(), metrics: await freePort() })
  }
  const initial = places.map(({ name, peer }) => `${name}=http://127.0.0.1:${peer}`).join(',')
  const shared = ['--initial-cluster', initial, ...(security?.flags ?? []), ...flags]
  const members = places.map((place) => member(place, folder, tls ? 'https' : 'http', shared))
  const remove = async () => {
    await Promise.all(members.map(({ kill }) => kill()))
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await Promise.all(members.map(({ start }) => start()))
  } catch (error) {
    // The caller has nothing to remove.
    await remove()
    throw error
  }
  return {
    members,
    urls: members.map(({ url }) => url),
    ...(security && { tls: security.client }),
    remove,
  }
}

type Place = { readonly name: string; readonly client: number; readonly peer: number; readonly metrics: number }

function member({ name, client, peer, metrics }: Place, folder: string, scheme: string, shared: readonly string[]) {
  const url = `${scheme}://127.0.0.1:${client}`
  const urls = { peer: `http://127.0.0.1:${peer}`, metrics: `http://127.0.0.1:${metrics}` }
  let running: ChildProcess | undefined
  return {
    url,
    port: client,
    get pid() {
      return running?.pid
    },
    async start() {
      // The kernel ends it with the test's process, also where that is killed for its time.
      const started = spawn(
        'setpriv',
        [
          ...['--pdeathsig', 'KILL', program],
          ...['--name', name, '--data-dir', join(folder, name), '--logger', 'zap', '--log-level', 'error'],
          ...['--listen-client-urls', url, '--advertise-client-urls', url, '--listen-metrics-urls', urls.metrics],
          ...['--listen-peer-urls', urls.peer, '--initial-advertise-peer-urls', urls.peer],
          ...['--heartbeat-interval', '100', '--election-timeout', '1000', '--enable-grpc-gateway=false'],
          // Tests kill processes, not machines: the kernel keeps what was written.
          '--unsafe-no-fsync',
          ...shared,
        ],
        { stdio: 'ignore' },
      )
      running = started
      const isHealthy = async () => /"health":\s*"true"/.test(await textAt(`${urls.metrics}/health`))
      await eventually(`etcd ${name} is healthy`, isHealthy, { everyMs: 50, giveUp: () => started.exitCode !== null })
    },
    async kill() {
      if (running === undefined) return
      const gone = running.exitCode === null && running.signalCode === null ? once(running, 'exit') : undefined
      running.kill('SIGKILL')
      await gone
      running = undefined
    },
    freeze: () => freezeProcess(running),
    thaw: () => void running?.kill('SIGCONT'),
    isLeader: async () => /^etcd_server_is_leader 1$/m.test(await textAt(`${urls.metrics}/metrics`)),
  }
}

async function issue(folder: string) {
  const authority = await openAuthority(join(folder, 'authority'), Date.now())
  const server = issueServer(authority, { names: ['localhost', '127.0.0.1'], nowMs: Date.now() })
  const { certificate, key } = issueAdmin(authority, { nowMs: Date.now() })
  const write = async (name: string, content: string) => {
    const path = join(folder, name)
    await writeFile(path, content, { mode: 0o600 })
    return path
  }
  const files = {
    ca: await write('ca.crt', authority.certificate),
    certificate: await write('client.crt', certificate),
    key: await write('client.key', key),
  }
  return {
    client: {
      ca: Buffer.from(authority.certificate),
      certificate: Buffer.from(certificate),
      key: Buffer.from(key),
      files,
    },
    flags: [
      ...['--client-cert-auth', '--trusted-ca-file', files.ca],
      ...['--cert-file', await write('server.crt', server.certificate)],
      ...['--key-file', await write('server.key', server.key)],
    ],
  }
}

function textAt(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get(url, { timeout: 2_000, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => {
        text += piece
      })
      response.on('end', () => resolve(text))
    })
    request.on('timeout', () => request.destroy(new Error(`No answer from ${url}`)))
    request.on('error', reject)
  })
}
