/** kubectl's streams to a node behind NAT, over a line that is slow and loses packets, and over one that is cut. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { type Controller, temporaryFolder } from './support/fleet.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { command } from './support/machine-commands.ts'
import { type NatNetwork, natNetwork, whyNoNat } from './support/nat-network.ts'
import { image } from './support/pods.ts'
import type { Program } from './support/program.ts'
import { eventually } from './support/wait.ts'

/** Writes a line each 0.3 s; serves a page, and connections that stay open. */
const script = [
  'mkdir /tmp/www; echo here > /tmp/www/index.html; httpd -p 8080 -h /tmp/www',
  'nc -ll -p 8081 -e sh -c "echo open; exec sleep 1000" &',
  'i=0; while :; do i=$((i+1)); echo "line $i"; sleep 0.3; done',
].join('\n')
const pod = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'talker' },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'main', image, command: ['sh', '-c', script] }],
  },
})

/** The keep-alive of the agent's connection is 15 s: it has ended one and a half times later, and with it the streams. */
const endedWithinMs = 22_500 + 8_000 // some for a busy machine

type Parts = { readonly controller: Controller; readonly network: NatNetwork; readonly agent: Program }

test('kubectl reaches a node behind NAT over a bad line', { skip: whyNoNat() }, async (t) => {
  const network = await natNetwork(t)
  const { controller, startReady } = await joinedFleet(t, { network })
  const [agent] = await startReady()
  const { kubectl, kubectlWith } = controller
  const parts = { controller, network, agent }
  await kubectlWith(pod, 'apply', '-f', '-')
  await kubectl('wait', '--for=condition=Ready', 'pod/talker', '--timeout=60s')

  await t.test('nothing can connect to the node', async (t) => {
    const address = await kubectl(
      'get',
      'node',
      'pi-1',
      '-o',
      'jsonpath={.status.addresses[?(@.type=="InternalIP")].address}',
    )
    t.equal(address, network.nodeAddress)
    const reaches = async (address: string) =>
      (await command('busybox', ['ping', '-c', '1', '-W', '1', '-I', network.hostInterface, address])).code === 0
    await eventually('the router is reached', () => reaches(network.natAddress))
    t.notOk(await reaches(network.nodeAddress), 'the node')
  })

  await t.test('with 100 ms of delay and 1 % of loss in each direction', async (t) => {
    t.comment(`the line is made slow by ${await network.slow()}`)
    const before = performance.now()
    await streamsWork(t, parts)
    t.comment(`all streams took ${secondsSince(before)} s`)
    await network.restore()
  })

  await t.test('a line that is cut ends all streams with an error, and all works after it', async (t) => {
    const { stop, endedInTime, commandRuns } = await streamsOver(t, parts)
    const cutMs = performance.now()
    await network.cut()
    const { ofNodes, ofHost } = await network.connections(Number(new URL(controller.apiUrl).port))
    t.ok(ofNodes >= 3 && ofHost >= 3, 'each stream is a connection of the node')
    t.ok(await commandRuns())
    await endedInTime(cutMs)
    await eventually('the agent has killed the command', async () => !(await commandRuns()), { withinMs: 60_000 })
    t.comment(`the command was killed ${secondsSince(cutMs)} s after the line was cut`)
    await refusedAtOnce(t, parts)
    const backMs = performance.now()
    await network.restore()
    await eventually('a stream runs', async () => (await controller.tryKubectl('logs', 'talker')).code === 0)
    t.comment(`streams run ${secondsSince(backMs)} s after the line is back`)
    await stop()
    await noSessions(parts)
    t.comment(`no stream is left ${secondsSince(backMs)} s after the line is back`)
    await streamsWork(t, parts)
  })
  t.same(
    agent.lines.filter(({ level }) => level === 'error'),
    [],
  )
})

/** Every kind of stream, at once where they can be, to its end. */
async function streamsWork(t: Test, parts: Parts): Promise<void> {
  const { controller } = parts
  const { kubectl, kubectlWith, tryKubectl } = controller
  const folder = await temporaryFolder(t)
  const logs = start(t, controller, 'logs', '-f', 'talker', '--tail=1')
  const forward = start(t, controller, 'port-forward', 'pod/talker', ':8080')
  const [ended, counted, [port]] = await Promise.all([
    tryKubectl('exec', 'talker', '--', 'sh', '-c', 'echo out; echo wrong >&2; exit 7'),
    kubectlWith('x'.repeat(50_000), 'exec', '-i', 'talker', '--', 'wc', '-c'),
    portsOf(forward, 1),
    eventually('lines arrive as they are written', () => logs.output().split('\n').length > 5),
  ])
  t.match(ended, { code: 7, stdout: 'out\n', stderr: /^wrong\n/ })
  t.equal(counted, '50000\n')
  const pages = await Promise.all([1, 2, 3].map(() => textOf(`http://127.0.0.1:${port}/`)))
  t.same(pages, ['here\n', 'here\n', 'here\n'])
  const content = randomBytes(200 * 1024)
  await writeFile(join(folder, 'there'), content)
  await kubectl('cp', join(folder, 'there'), 'talker:/tmp/here')
  const sum = createHash('sha256').update(content).digest('hex')
  t.equal(await kubectl('exec', 'talker', '--', 'sha256sum', '/tmp/here'), `${sum}  /tmp/here\n`)
  await kubectl('cp', 'talker:/tmp/here', join(folder, 'back'))
  t.ok(content.equals(await readFile(join(folder, 'back'))), 'the copy of the copy')
  await Promise.all([logs.kill(), forward.kill()])
  await noSessions(parts)
}

/** Streams that run, of each kind; `endedInTime` resolves when each has ended with its error. */
async function streamsOver(t: Test, { controller }: Parts) {
  const logs = start(t, controller, 'logs', '-f', 'talker', '--tail=1')
  // A number of its own: it is looked for among all processes of the machine.
  const sleeping = `sleep ${randomInt(1_000_000, 9_000_000)}`
  const exec = start(t, controller, 'exec', '-i', 'talker', '--', 'sh', '-c', `echo started; exec ${sleeping}`)
  // With an open connection, and with one that is made while the line is cut.
  const open = start(t, controller, 'port-forward', 'pod/talker', ':8081')
  const asked = start(t, controller, 'port-forward', 'pod/talker', ':8080')
  const [[openPort], [port]] = await Promise.all([portsOf(open, 1), portsOf(asked, 1)])
  const page = `http://127.0.0.1:${port}/`
  await eventually('all streams run', () => logs.output() !== '' && exec.output() === 'started\n')
  t.equal(await textOf(page), 'here\n')
  const connection = connect(Number(openPort), '127.0.0.1').on('error', () => undefined)
  t.equal(`${(await once(connection, 'data'))[0]}`, 'open\n')
  const closed = once(connection, 'close')
  return {
    stop: () => open.kill(),
    commandRuns: () => runs(sleeping),
    async endedInTime(cutMs: number) {
      const inTime = async (name: string, end: Promise<unknown>) => {
        await end
        t.comment(`${name} ended ${secondsSince(cutMs)} s after the line was cut`)
        t.ok(performance.now() - cutMs < endedWithinMs, `${name} ends in time`)
      }
      const answer = textOf(page).catch(() => 'none')
      await Promise.all([
        inTime('logs -f', logs.ended),
        inTime('exec', exec.ended),
        inTime('an open connection of port-forward', closed),
        inTime('port-forward with a new connection', asked.ended),
      ])
      t.equal(await answer, 'none')
      t.match(await logs.ended, { code: 1, stderr: /error: stream error: .*INTERNAL_ERROR/ })
      t.match(await exec.ended, { code: 1, stderr: /error: .*the connection to the node ended/ })
      t.match(await asked.ended, { code: 1, stderr: /lost connection to pod/ })
      t.comment((await asked.ended).stderr.trim())
    },
  }
}

async function refusedAtOnce(t: Test, { controller }: Parts): Promise<void> {
  for (const args of [
    ['logs', 'talker'],
    ['exec', 'talker', '--', 'true'],
  ]) {
    const before = performance.now()
    const { code, stderr } = await controller.tryKubectl(...args)
    t.match({ code, stderr }, { code: 1, stderr: /node "pi-1" has no connection to the controller/ }, args.join(' '))
    // A request to a node that does not answer would take 15 s.
    t.ok(performance.now() - before < 10_000, `${args[0]}: at once`)
  }
}

async function noSessions({ controller, network }: Parts): Promise<void> {
  const apiPort = Number(new URL(controller.apiUrl).port)
  await eventually('neither program keeps a stream', async () => {
    const { ofNodes, ofHost } = await network.connections(apiPort)
    return ofNodes === 0 && ofHost === 0
  })
}

/** Whether a process has these arguments. */
async function runs(args: string): Promise<boolean> {
  const numbers = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(numbers.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return lines.some((line) => line === `${args.replace(' ', '\0')}\0`)
}

const secondsSince = (ms: number) => ((performance.now() - ms) / 1000).toFixed(1)

async function textOf(url: string): Promise<string> {
  const answer = await fetch(url, { headers: { connection: 'close' } })
  return answer.text()
}

/** The local ports of a port-forward, once it listens on this many. */
function portsOf({ output }: Running, count: number): Promise<readonly string[]> {
  return eventually('it listens', () => {
    const ports = [...output().matchAll(/127\.0\.0\.1:(\d+) ->/g)].map(([, port = '']) => port)
    return ports.length === count && ports
  })
}

type Running = {
  readonly output: () => string
  readonly ended: Promise<{ readonly code: number | null; readonly stderr: string }>
  kill(): Promise<unknown>
}

function start(t: Test, { kubeconfig }: Controller, ...args: readonly string[]): Running {
  const child: ChildProcess = spawn('kubectl', ['--kubeconfig', kubeconfig, ...args], { stdio: 'pipe' })
  let [output, stderr] = ['', '']
  child.stdin?.on('error', () => undefined)
  child.stdout?.on('data', (piece: Buffer) => {
    output += piece.toString()
  })
  child.stderr?.on('data', (piece: Buffer) => {
    stderr += piece.toString()
  })
  const ended = once(child, 'close').then(([code]) => ({ code, stderr }))
  const kill = () => {
    child.kill('SIGKILL')
    return ended
  }
  t.teardown(kill)
  return { output: () => output, ended, kill }
}
