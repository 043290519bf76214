/** The MQTT broker of a household: a real Mosquitto with a password, and TLS on a second port; and a client in the place of Home Assistant. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import mqtt from 'mqtt'
import { freePort } from '../../agent/testing/free-port.ts'
import { openAuthority } from '../../certs/authority.ts'
import { issueServer } from '../../certs/issue.ts'
import { type Teardown, temporaryFolder } from './fleet.ts'
import { skipWithout } from './missing-parts.ts'
import { eventually } from './wait.ts'

/** Debian puts it where only root's path looks. */
const program = '/usr/sbin/mosquitto'
const username = 'bramble'
const password = 'a password of a household'

export const whyNoHousehold: string | false = skipWithout('mosquitto', existsSync(program))

export type Household = {
  /** With the password. */
  readonly plain: { readonly server: string; readonly username: string; readonly passwordFile: string }
  /** The same with TLS, for the host name `localhost`. */
  readonly encrypted: Household['plain'] & { readonly caFile: string }
  readonly folder: string
  /** Like a power cut: it forgets retained messages, and notifies no client. */
  kill(): Promise<void>
  start(): Promise<void>
  /** A client that receives everything. */
  client(): Promise<HouseholdClient>
}

export type HouseholdClient = {
  /** The last body of a topic; '' where it was removed, undefined where nothing was received. */
  last(topic: string): string | undefined
  /** The topics with a body, in order. */
  topics(): readonly string[]
  /** How many messages arrived on this topic. */
  count(topic: string): number
  publish(topic: string, body: string, retain?: boolean): Promise<void>
}

/** Started; removed at the end of the test. */
export async function household(t: Teardown): Promise<Household> {
  const folder = await temporaryFolder(t)
  const path = (name: string) => join(folder, name)
  const authority = await openAuthority(path('authority'), Date.now())
  const server = issueServer(authority, { names: ['localhost'], nowMs: Date.now() })
  const [port, tlsPort] = [await freePort(), await freePort()]
  await writeFile(path('ca.crt'), authority.certificate)
  await writeFile(path('server.crt'), server.certificate)
  await writeFile(path('server.key'), server.key, { mode: 0o600 })
  await writeFile(path('password'), `${password}\n`, { mode: 0o600 })
  await promisify(execFile)('mosquitto_passwd', ['-b', '-c', path('passwords'), username, password])
  await chmod(path('passwords'), 0o600)
  const user = process.getuid?.() === 0 ? 'root' : 'mosquitto'
  const lines = [
    ...['persistence false', 'allow_anonymous false', `password_file ${path('passwords')}`, `user ${user}`],
    `listener ${port} 127.0.0.1`,
    `listener ${tlsPort} 127.0.0.1`,
    ...[`cafile ${path('ca.crt')}`, `certfile ${path('server.crt')}`, `keyfile ${path('server.key')}`],
  ]
  await writeFile(path('mosquitto.conf'), `${lines.join('\n')}\n`)
  let running: ChildProcess | undefined
  const kill = async () => {
    if (running === undefined) return
    const gone = once(running, 'exit')
    running.kill('SIGKILL')
    await gone
    running = undefined
  }
  const login = { username, password, reconnectPeriod: 0, protocolVersion: 4 as const }
  const start = async () => {
    running = spawn(program, ['-c', path('mosquitto.conf')], { stdio: 'ignore' })
    await eventually('the broker listens', async () => {
      const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${port}`, login)
      await client.endAsync()
      return true
    })
  }
  t.teardown(kill)
  await start()
  const plain = { server: `mqtt://127.0.0.1:${port}`, username, passwordFile: path('password') }
  return {
    plain,
    encrypted: { ...plain, server: `mqtts://localhost:${tlsPort}`, caFile: path('ca.crt') },
    folder,
    kill,
    start,
    async client() {
      const client = await mqtt.connectAsync(plain.server, login)
      client.on('error', () => undefined)
      t.teardown(() => client.endAsync(true))
      const bodies = new Map<string, string>()
      const counts = new Map<string, number>()
      client.on('message', (topic, body) => {
        bodies.set(topic, body.toString())
        counts.set(topic, (counts.get(topic) ?? 0) + 1)
      })
      await client.subscribeAsync('#', { qos: 1 })
      return {
        last: (topic) => bodies.get(topic),
        topics: () => [...bodies].flatMap(([topic, body]) => (body === '' ? [] : [topic])).toSorted(),
        count: (topic) => counts.get(topic) ?? 0,
        publish: async (topic, body, retain = false) => {
          await client.publishAsync(topic, body, { qos: 1, retain })
        },
      }
    },
  }
}
