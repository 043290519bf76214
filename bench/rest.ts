/** Measures the disk writes of an idle machine and the memory of its agent. `--help` prints the usage. */
import { readFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { bootMachine, type Machine } from '../test/support/machine.ts'
import { machineNetwork } from '../test/support/machine-network.ts'
import { podManifest } from '../test/support/manifests.ts'
import { hubOn, install, isNodeReady, testPackages } from '../test/support/packaged.ts'
import { eventually } from '../test/support/wait.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const values = benchmarkOptions({
  name: 'node dist/bench/rest.js',
  text: `Measures what an idle machine writes to its disk, and the memory of its agent: a booted machine with the package installed as a user
does it, one pod, and a controller on another machine. Prints a row for each part of the time. Needs what test/machines/README.md lists.`,
  options: {
    parts: { value: 'N', help: 'parts of the time', range: [0, 100_000], default: '6' },
    minutes: { value: 'MIN', help: 'length of each', range: [1, 100_000], default: '10' },
  },
})
const image = 'test/busybox:1'
const ends: (() => Promise<unknown>)[] = []
const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }

try {
  const machine = await machineAtWork()
  console.log(`${cpus().length} cores, ${await machine.run('/usr/lib/bramble-runtime/*.*/node --version')}`)
  await lookOn(machine, values.parts, values.minutes)
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (const end of ends.reverse()) await end()
}

async function machineAtWork(): Promise<Machine> {
  const packages = await testPackages()
  const network = await machineNetwork(ending)
  const hubMachine = await bootMachine(ending, { name: 'hub', network })
  await install(hubMachine, packages.controller)
  const hub = await hubOn(ending, hubMachine)
  const machine = await bootMachine(ending, { name: 'pi-01', network })
  await machine.importImage(image)
  await install(machine, packages.agent)
  await machine.run(`${await hub.joinLine()} --no-run`)
  await eventually('it is Ready', () => isNodeReady(hub, 'pi-01'))
  await hub.kubectlWith(podManifest({ name: 'idle', image }), 'apply', '-f', '-')
  await hub.kubectl('wait', '--for=condition=Ready', 'pod/idle', '--timeout=60s')
  return machine
}

/** Prints a row for the start, and one for each part. Bytes as /proc/PID/io counts them: pages that were changed, to be written. */
async function lookOn(machine: Machine, parts: number, minutes: number): Promise<void> {
  const agentPid = await mainPid(machine, 'bramble-agent')
  const dockerPids = [await mainPid(machine, 'docker'), await mainPid(machine, 'containerd')]
  const journalPid = await mainPid(machine, 'systemd-journald')
  const look = async () => {
    const [agent, journal, ...docker] = await Promise.all(
      [agentPid, journalPid, ...dockerPids].map((pid) => written(machine, pid)),
    )
    const lines = (await machine.journal('bramble-agent')).trim().split('\n').length
    return [agent, lines, journal, docker.reduce((sum, one) => sum + one, 0), await ticksOf(machine, agentPid)].map(
      Number,
    )
  }
  const heads = ['', 'bytes by the agent', 'its lines in the journal', 'bytes by journald', 'bytes by Docker']
  printRow([...heads, 'processor', 'resident', 'anonymous', 'of files', 'at its highest'])
  printRow(Array.from({ length: 10 }, () => '---'))
  let before = [0, 0, 0, 0, 0]
  for (let part = 0; part <= parts; part++) {
    if (part > 0) await delay(minutes * 60_000)
    const now = await look()
    const more = now.map((value, i) => value - (before[i] ?? 0))
    const seconds = (more.pop() ?? 0) / 100
    const when = part === 0 ? 'until then' : `to ${part * minutes} min`
    printRow([when, ...more.map(String), `${seconds.toFixed(2)} s`, ...(await memoryOf(machine, agentPid))])
    before = now
  }
}

function printRow(cells: readonly string[]): void {
  console.log(`| ${cells.join(' | ')} |`)
}

async function mainPid(machine: Machine, unit: string): Promise<number> {
  return Number(await machine.run(`systemctl show --property MainPID --value ${unit}`))
}

/** Less what was removed again before it was written. */
async function written(machine: Machine, pid: number): Promise<number> {
  const io = await readFile(machine.path(`/proc/${pid}/io`), 'utf8')
  const field = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(io)?.[1])
  return field('write_bytes') - field('cancelled_write_bytes')
}

/** Hundredths of a second of processor. */
async function ticksOf(machine: Machine, pid: number): Promise<number> {
  const stat = await readFile(machine.path(`/proc/${pid}/stat`), 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11]) + Number(fields[12])
}

async function memoryOf(machine: Machine, pid: number): Promise<string[]> {
  const status = await readFile(machine.path(`/proc/${pid}/status`), 'utf8')
  return ['VmRSS', 'RssAnon', 'RssFile', 'VmHWM'].map((name) => {
    const kilobytes = Number(new RegExp(`${name}:\\s*(\\d+)`).exec(status)?.[1])
    return `${((kilobytes * 1024) / 1e6).toFixed(1)} MB`
  })
}
