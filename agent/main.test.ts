import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { openLink } from './adapters/mqtt/mqtt-link.ts'
import { writeIdentity } from './join/identity.ts'
import { mosquitto, noMosquitto } from './testing/mosquitto.ts'
import { until } from './testing/until.ts'

const program = fileURLToPath(new URL('./main.js', import.meta.url))

type Line = { readonly level: string; readonly message: string; readonly [fact: string]: unknown }
type Agent = {
  readonly child: ChildProcess
  readonly output: () => string
  readonly lines: () => readonly Line[]
  readonly exitCode: Promise<number | null>
  logged(message: string): Line | undefined
}

function bramble(t: Test, ...args: readonly string[]): Agent {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const exitCode = once(child, 'close').then(([code]) => code as number | null)
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await exitCode
  })
  const lines = () =>
    output
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as Line)
  return {
    child,
    output: () => output,
    lines,
    exitCode,
    logged: (message) => lines().find((line) => line.message === message),
  }
}

/** A machine that joined a fleet whose controller is unreachable. */
async function joined(
  t: Test,
  mqttUrl = 'mqtts://127.0.0.1:1',
  keys?: { ca: string; certificate: string; key: string },
) {
  const directory = testFolder(t)
  const made = keys ?? (await (await mosquittoFor(t)).keysOf('pi-1'))
  await writeIdentity(directory, { nodeName: 'pi-1', apiUrl: 'https://127.0.0.1:1', mqttUrl, ...made })
  return directory
}

async function mosquittoFor(t: Test) {
  const at = await mosquitto()
  t.teardown(() => at.remove())
  return at
}

const running = (directory: string) => [
  'run',
  `--data-dir=${directory}`,
  `--docker-socket=${join(directory, 'no-docker')}`,
  '--healthz-port=0',
  '--log-format=json',
]

test('after a read error of the disk the agent exits for a restart', async (t) => {
  const directory = testFolder(t)
  // Reading the first page of a program's memory is an I/O error.
  symlinkSync('/proc/self/mem', join(directory, 'identity.json'))
  const agent = bramble(t, 'run', '--data-dir', directory, '--log-format=json')
  t.equal(await agent.exitCode, 1)
  t.match(agent.logged('Agent not started'), { error: /Cannot read .*identity\.json: EIO/, remedy: /dmesg/ })
})

test('on a machine that has not joined, the agent prints how, and exits so that systemd does not restart it', async (t) => {
  const agent = bramble(t, '--data-dir', testFolder(t))
  t.equal(await agent.exitCode, 78)
  t.match(agent.output(), /has not joined a fleet.*token create --print-join-command/s)
})

test('all mistakes of a configuration are printed before anything starts', async (t) => {
  const directory = await joined(t)
  const config = join(directory, 'agent.yaml')
  writeFileSync(config, 'apiVersion: bramble.dev/v1alpha1\nkind: AgentConfiguration\nmaxPods: -1\nnodeIP: here\n')
  const agent = bramble(t, ...running(directory), '--config', config)
  t.equal(await agent.exitCode, 78)
  t.match(agent.output(), /maxPods: .*nodeIP: /s)
  t.equal(
    await bramble(t, ...running(directory), '--node-name', 'pi-2').exitCode,
    78,
    'another name than it joined with',
  )
  const checked = bramble(t, ...running(directory), '--check')
  t.equal(await checked.exitCode, 0)
  t.match(checked.output(), /node pi-1 are valid/)
  t.notOk(readdirSync(directory).includes('agent.lock'), 'checking leaves nothing behind')
})

test('an agent starts without controller, network and Docker, answers on its endpoint, and stops in order', async (t) => {
  const directory = await joined(t)
  const agent = bramble(t, ...running(directory))
  const opened = await until('the local endpoint', () => agent.logged('Local endpoint open'))
  await until('it logged all three', () =>
    [
      agent.logged('Cannot connect to the control plane, trying until it works'),
      agent.logged('Cannot register the node yet, trying until it works'),
      agent.logged('Container engine does not answer; is Docker running? Trying again until it does'),
    ].every((line) => line !== undefined),
  )
  t.equal(await textAt(`${opened['url']}/healthz`), 'ok\n')
  t.match(await textAt(`${opened['url']}/pods`), /--unix-socket/)
  const socket = await until('the local socket, or why there is none', () =>
    [agent.logged('Local socket open'), agent.logged('Cannot open the local socket, continuing without it')].find(
      Boolean,
    ),
  )
  if (process.getuid?.() === 0) t.equal(statSync(String(socket['path'])).mode & 0o777, 0o600)

  const second = bramble(t, ...running(directory))
  t.equal(await second.exitCode, 1)
  t.match(second.logged('Agent ended'), { error: new RegExp(`process ${agent.child.pid}`), remedy: /--data-dir/ })

  agent.child.kill('SIGTERM')
  t.equal(await agent.exitCode, 0)
  t.ok(agent.logged('Agent stopped'))
  t.notMatch(agent.output(), /Warning/)
  t.same(
    readdirSync(directory).toSorted(),
    ['boot-id', 'identity.json', 'identity.json.copy', 'last-known-time', 'pool.json', 'volumes'],
    'no lock and no litter stays',
  )
})

function textAt(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      response.on('end', () => resolve(text))
    }).on('error', reject)
  })
}

test('an agent posts its status, beats, and is neither writing nor starting programs while idle', {
  skip: noMosquitto,
}, async (t) => {
  const at = await mosquittoFor(t)
  await at.start()
  const bodies = new Map<string, string>()
  const listener = (topic: string, body: string) => void bodies.set(topic.replace('bramble/v1/nodes/pi-1/', ''), body)
  const will = { topic: 'w', body: '' }
  const keys = at.keysOf('controller')
  const settings = { host: 'localhost', port: at.port, clientId: 'c', ...keys, keepaliveSeconds: 30, will }
  const controller = await openLink(settings, listener, new AbortController().signal)
  t.teardown(() => controller.close())
  await controller.subscribe(['bramble/v1/#'])

  const directory = await joined(t, at.url, at.keysOf('pi-1'))
  const config = join(directory, 'agent.yaml')
  writeFileSync(config, 'apiVersion: bramble.dev/v1alpha1\nkind: AgentConfiguration\nnodeLeaseDurationSeconds: 4\n')
  const agent = bramble(t, ...running(directory), '--config', config)
  await until('the status is posted', () => agent.logged('Node status posted'))
  t.match(agent.logged('Node status posted'), { node: 'pi-1', ready: false })
  const status = JSON.parse(await until('the status', () => bodies.get('status')))
  t.match(status.nodeInfo, { operatingSystem: 'linux', containerRuntimeVersion: 'docker://Unknown' })
  const types: readonly string[] = status.conditions.map(({ type }: { type: string }) => type)
  t.same(types.slice(0, 3), ['MemoryPressure', 'DiskPressure', 'PIDPressure'])
  t.equal(types.at(-1), 'Ready')
  await until('a heartbeat', () => bodies.get('lease'))

  await until('the machine was described', () => childrenOf(agent.child.pid).length === 0)
  const beats = () => Number(JSON.parse(bodies.get('lease') ?? '').seq)
  const written = () => bytesWritten(agent.child.pid)
  // What is written once a start may take its time on a slow disk. If each beat wrote something, writes would never pause.
  let seen = { beats: beats(), written: written() }
  await until('three beats without a byte written', () => {
    if (written() !== seen.written) seen = { beats: beats(), written: written() }
    return beats() > seen.beats + 2
  })
  t.same(childrenOf(agent.child.pid), [])
})

function bytesWritten(pid: number | undefined): number {
  return Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])
}

function childrenOf(pid: number | undefined): readonly string[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .split(' ')
    .filter((child) => child !== '')
}
