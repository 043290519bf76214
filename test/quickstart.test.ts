import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import tap, { type Test, test } from 'tap'
import { whyNoKubectl } from '../broker-controller/testing/kubectl.ts'
import { whyNoDockerd } from './support/dockerd.ts'
import { skipWithout } from './support/missing-parts.ts'
import { refuseWarnings } from './support/process-warnings.ts'
import { eventually } from './support/wait.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const skip = whyNotHere()

// better-sqlite3 is compiled where no ready-made file can be had: a minute by itself, six on two cores that others want, too.
const wholeMs = 20 * 60_000
tap.setTimeout(wholeMs)
const firstStartMs = 12 * 60_000
const nextStartMs = 2 * 60_000

test('a fresh clone becomes a Ready node, and nothing is left of it afterwards', {
  skip,
  timeout: wholeMs,
}, async (t) => {
  const { data, quickstart } = await freshClone(t)
  const ports = ['--api-port', '0', '--mqtt-port', '0']

  const first = await quickstart(firstStartMs, '--yes', '--background', '--node-name', 'fresh', ...ports)
  t.equal(first.code, 0, 'it starts') || t.comment(first.output)
  t.match(first.output, /Installing JavaScript packages/)
  t.match(first.output, /Node fresh is Ready/)
  t.match(first.output, `export KUBECONFIG=${data}/kubeconfig`, 'and prints what to try')
  t.equal(await ready(data, 'fresh'), 'True', 'kubectl sees it')
  const pids = await pidsOf(data)
  t.hasProps(pids, ['controller', 'agent'])
  t.equal(await rangeOf(data), '10.244.0.0/16', 'a new fleet is routed')
  // Tests of other clones may run on this machine.
  const isAlone = !/Docker's own network/.test(first.output)
  if (isAlone) {
    const isOnNetwork = async () => (await condition(data, 'fresh', 'FleetNetworkUnavailable')) === 'False'
    await eventually('the node reports that it has the network', isOnNetwork, { withinMs: 60_000 })
  }

  const second = await quickstart(nextStartMs, '--yes', '--background')
  t.equal(second.code, 0, 'a second start changes nothing') || t.comment(second.output)
  t.same(await pidsOf(data), pids)
  t.notMatch(second.output, /Installing|Making|Compiling/, 'and has nothing to install')

  process.kill(Number(pids['agent']), 'SIGKILL')
  await writeFile(join(data, 'agent.pid'), `${process.pid}\n`)
  const third = await quickstart(nextStartMs, '--yes', '--background')
  t.equal(third.code, 0, 'what is missing is started, whichever process has its old id') || t.comment(third.output)
  const { agent, ...rest } = await pidsOf(data)
  const { agent: before, ...restBefore } = pids
  t.same(rest, restBefore, 'the rest is left alone')
  t.notSame(agent, before)
  t.equal(await ready(data, 'fresh'), 'True')

  const renamed = await quickstart(nextStartMs, '--yes', '--background', '--node-name', 'other')
  t.equal(renamed.code, 1, 'it keeps its name')
  t.match(renamed.output, 'This machine is node fresh of this fleet already')

  const beside = `${data}-2`
  const another = await quickstart(
    nextStartMs,
    '--yes',
    '--background',
    '--node-name',
    'beside',
    '--data',
    beside,
    ...ports,
  )
  t.equal(another.code, 0, 'another fleet runs beside it') || t.comment(another.output)
  t.match(another.output, /Another agent of this machine, process \d+, has the network of pods/)
  t.equal(await ready(beside, 'beside'), 'True')
  await quickstart(nextStartMs, '--stop', '--data', beside)
  t.same(await processesOf(beside), [])
  t.equal(await ready(data, 'fresh'), 'True', 'and its end does not touch this one')

  const member = `${data}-3`
  const options = ['--yes', '--background', '--data', member]
  const line = await quickstart.joinLine()
  const joined = await quickstart(nextStartMs, ...options, '--node-name', 'second', ...line)
  t.equal(joined.code, 0, 'the printed line of a clone makes a second node') || t.comment(joined.output)
  t.match(joined.output, /Node second is connected to its fleet/)
  t.equal(await ready(data, 'second'), 'True')
  // An agent of another test may have had the network of the machine, and given it to the second node.
  const networkOf = (node: string) => condition(data, node, 'FleetNetworkUnavailable')
  await eventually(
    'one of the two nodes of the machine has no part in the network, and reports it',
    async () => (await networkOf('second')) === 'True' || (await networkOf('fresh')) === 'True',
    { withinMs: 60_000 },
  )
  t.equal(await taints(data, 'second'), '', 'and takes pods all the same')
  t.same(Object.keys(await pidsOf(member)).includes('controller'), false, 'without a controller of its own')
  const again = await quickstart(nextStartMs, ...options)
  t.equal(again.code, 0, 'later its data folder alone is sufficient') || t.comment(again.output)
  const foreign = await quickstart(nextStartMs, ...options, ...line.map((one) => one.replace(/^sha256:.*/, otherHash)))
  t.match(foreign, { code: 1, output: 'This machine is node second of another fleet' })
  await leavePortRules('second')
  await quickstart(nextStartMs, '--stop', '--data', member)
  t.same(await processesOf(member), [])

  const bridge = await networkOn(data)
  t.ok(bridge === undefined || isThere(bridge))
  await leavePortRules('fresh')
  const stopped = await quickstart(nextStartMs, '--stop')
  t.equal(stopped.code, 0)
  t.match(stopped.output, /agent.*controller/s, 'in order')
  t.same(await processesOf(data), [], 'nothing runs any more')
  t.same(await pidsOf(data), {})
  t.notOk(bridge !== undefined && isThere(bridge), 'and no network of its Docker is in the way of another')
  if (isAlone) await t.rejects(run('nft', ['list', 'table', 'ip', 'bramble']), 'nor are rules of its agent')
  t.notMatch(await portRules(), /bramble-(fresh|second)$/m, 'nor those of the ports of pods')

  await t.test('a port in use is reported with its remedy', async (t) => {
    const server = createServer().listen(0)
    await once(server, 'listening')
    t.teardown(() => server.close())
    const { port } = server.address() as AddressInfo
    const refused = await quickstart(nextStartMs, '--yes', '--background', '--api-port', String(port))
    t.equal(refused.code, 1)
    t.match(refused.output, new RegExp(`Port ${port}.*Remedy: .*--api-port`, 's'))
    t.same(await processesOf(data), [], 'and nothing is left running')
    const nonsense = await quickstart(nextStartMs, '--yes', '--background', '--api-port', 'http')
    t.equal(nonsense.code, 64)
    t.match(nonsense.output, 'not a port: http; give a number from 0 to 65535')
  })

  await t.test('Ctrl-C ends what was started, in order', async (t) => {
    const going = quickstart.start('--yes')
    await going.printed(/It runs until Ctrl-C/, nextStartMs)
    t.equal(await ready(data, 'fresh'), 'True', 'the same node, without joining again')
    going.process.kill('SIGINT')
    await going.ended
    const order = [...going.output().matchAll(/Stopping (\w+)/g)].map(([, name]) => name)
    t.same(order.slice(0, 2), ['agent', 'controller'])
    t.same(await processesOf(data), [])
  })
})

type Ended = { readonly code: number | null; readonly output: string }
type Going = {
  readonly process: ChildProcess
  output(): string
  printed(words: RegExp, withinMs: number): Promise<void>
  readonly ended: Promise<number | null>
}
const otherHash = `sha256:${'0'.repeat(64)}`

type Quickstart = {
  (timeoutMs: number, ...args: string[]): Promise<Ended>
  /** The options that make another machine a node of this fleet, as they are printed. */
  joinLine(): Promise<string[]>
  start(...args: string[]): Going
}

async function freshClone(t: Test): Promise<{ readonly data: string; readonly quickstart: Quickstart }> {
  const folder = await mkdtemp(join(tmpdir(), 'bq-'))
  const data = join(folder, 'd')
  const clone = join(folder, 'bramble')
  await run('git', ['-c', 'safe.directory=*', 'clone', '--quiet', root, clone])
  let starts = 0
  const start = (...args: string[]) =>
    going(join(clone, 'scripts/quickstart.sh'), ['--data', data, ...args], join(folder, `output-${++starts}`))
  const quickstart = Object.assign(
    async (timeoutMs: number, ...args: string[]) => {
      const script = start(...args)
      const late = setTimeout(() => script.process.kill('SIGTERM'), timeoutMs)
      const code = await script.ended
      clearTimeout(late)
      return { code, output: script.output() }
    },
    {
      start,
      async joinLine() {
        const args = ['token', 'create', '--kubeconfig', join(data, 'kubeconfig'), '--print-join-command']
        const { stderr } = await run(join(clone, 'scripts/bramble-controller'), args)
        const [, options = ''] = /scripts\/quickstart\.sh (--join .*)/.exec(stderr) ?? []
        return options.split(' ')
      },
    },
  )
  t.teardown(async () => {
    const all = [data, `${data}-2`, `${data}-3`]
    for (const one of all) await quickstart(nextStartMs, '--stop', '--data', one)
    const logs = await Promise.all(all.map(logsOf))
    await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
    refuseWarnings(data, logs.join('\n'))
  })
  return { data, quickstart }
}

/** What the programs of that data folder wrote into their logs. */
async function logsOf(data: string): Promise<string> {
  const folder = join(data, 'logs')
  const names = await readdir(folder).catch(() => [])
  return (await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8').catch(() => '')))).join('\n')
}

/** Its output goes to `log`: it is complete once the script has ended, while other processes run on in the background. */
function going(command: string, args: readonly string[], log: string): Going {
  const file = openSync(log, 'w')
  const child = spawn(command, args, { stdio: ['ignore', file, file] })
  closeSync(file)
  const output = () => readFileSync(log, 'utf8')
  return {
    process: child,
    output,
    ended: once(child, 'exit').then(([code]) => code as number | null),
    async printed(words, withinMs) {
      await eventually(`it prints ${words}`, () => words.test(output()) || child.exitCode !== null, { withinMs })
      if (!words.test(output())) throw new Error(`It did not print ${words}:\n${output()}`)
    },
  }
}

const ready = (data: string, node: string) => condition(data, node, 'Ready')

function condition(data: string, node: string, type: string): Promise<string> {
  return shown(data, 'get', 'node', node, '-o', `jsonpath={.status.conditions[?(@.type=="${type}")].status}`)
}

function taints(data: string, node: string): Promise<string> {
  return shown(data, 'get', 'node', node, '-o', 'jsonpath={.spec.taints}')
}

/** Range of the fleet's pods; '' without a network between nodes. */
function rangeOf(data: string): Promise<string> {
  return shown(data, '-n', 'kube-public', 'get', 'cm', 'cluster-info', '-o', 'jsonpath={.data.clusterCIDR}')
}

/** As of pods that end after their agent. */
async function leavePortRules(node: string): Promise<void> {
  await run('nft', ['add', 'table', 'bridge', `bramble-${node}`]).catch(() => undefined)
}

/** '' without nft. */
async function portRules(): Promise<string> {
  return run('nft', ['list', 'tables', 'bridge']).then(
    ({ stdout }) => stdout,
    () => '',
  )
}

async function shown(data: string, ...args: readonly string[]): Promise<string> {
  return (await run('kubectl', ['--kubeconfig', join(data, 'kubeconfig'), ...args])).stdout
}

async function pidsOf(data: string): Promise<{ readonly [name: string]: string }> {
  const files = (await readdir(data)).filter((name) => name.endsWith('.pid'))
  const pids = files.map(async (name) => [name.slice(0, -4), (await readFile(join(data, name), 'utf8')).trim()])
  return Object.fromEntries(await Promise.all(pids))
}

/** The link of a network made on its own dockerd; undefined where systemd runs, and the system's Docker is used. */
async function networkOn(data: string): Promise<string | undefined> {
  const socket = join(data, 'docker.sock')
  if (!existsSync(socket)) return undefined
  const { stdout } = await run('docker', ['--host', `unix://${socket}`, 'network', 'create', 'of-pods'])
  return `br-${stdout.slice(0, 12)}`
}

const isThere = (link: string) => existsSync(`/sys/class/net/${link}`)

/** Command lines of living processes that name the data folder. */
async function processesOf(data: string): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return lines.filter((line) => line.includes(`${data}/`)).map((line) => line.replaceAll('\0', ' '))
}

function whyNotHere(): string | false {
  return skipWithout('clone', existsSync(join(root, '.git'))) || whyNoKubectl() || whyNoDockerd()
}
