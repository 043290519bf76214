/**
 * Measures streams on real parts: kubectl, controller, agent and Docker on one machine, against a plain TLS socket and a bare
 * relay in the same run.
 * Needs root, kubectl, docker and busybox-static.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startDockerd } from '../test/support/dockerd.ts'
import { joinFleet, startAgent, startController } from '../test/support/fleet.ts'
import { eventually } from '../test/support/wait.ts'
import { streamCeiling } from './streams/ceiling.ts'

const help = `Usage: node dist/bench/streams.js [--mib N] [--execs N]

Starts a controller, an agent and Docker in a temporary folder, and prints a table. Takes about two minutes.

  --mib N    to transfer in each direction, default 200
  --execs N  commands to run, one after the other, default 20
`
const { values } = parseArgs({
  options: {
    mib: { type: 'string', default: '200' },
    execs: { type: 'string', default: '20' },
    help: { type: 'boolean', default: false },
  },
})
const mib = Number(values.mib)
const execs = Number(values.execs)
const image = 'test/busybox:1'
const ends: (() => Promise<unknown>)[] = []
const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }

async function measure(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'bs-'))
  ending.teardown(() => rm(folder, { recursive: true, force: true }))
  const dockerd = await startDockerd(ending)
  await dockerd.importImage(image)
  const controller = await startController(ending, { dataDir: join(folder, 'controller') })
  const dataDir = join(folder, 'pi-1')
  await joinFleet(controller, 'pi-1', dataDir)
  const settings = { containerLogMaxSize: `${mib * 2}Mi` }
  const agent = await startAgent(ending, { dataDir, dockerSocket: dockerd.socket, settings })
  await controller.nodesReady('pi-1')
  const file = `head -c ${mib * 2 ** 20} /dev/zero > /tmp/file`
  const line = `head -c ${mib * 2 ** 20} /dev/zero | tr '\\0' x | fold -w 1000`
  const pods = [
    ['files', `${file}; exec httpd -f -p 8080 -h /tmp`],
    ['logs', `${line}; exec sleep 1000`],
  ] as const
  for (const [name, script] of pods) {
    const containers = [{ name: 'main', image, command: ['sh', '-c', script] }]
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers } }
    await controller.kubectlWith(JSON.stringify(pod), 'apply', '-f', '-')
    await controller.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=80s')
  }
  const kubeconfig = ['--kubeconfig', controller.kubeconfig]
  const page = ['wget', '-qO-', 'http://127.0.0.1:8080/']
  await eventually('files are there', async () => {
    const { stderr } = await controller.tryKubectl('exec', 'files', '--', ...page)
    return !/refused/.test(stderr)
  })
  await settled(() => controller.kubectl('logs', 'logs', '--tail=1'))
  await delay(3_000)

  const [load = 0] = loadavg()
  console.log(`Node ${process.version}, ${cpus().length} cores, load ${load.toFixed(1)}, ${mib} MiB\n`)
  const idleKiB = await residentKiB(agent.pid)
  const idle = spawn('kubectl', [...kubeconfig, 'exec', '-i', 'files', '--', 'cat'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  idle.stdin.write('x')
  await once(idle.stdout, 'data')
  await delay(5_000)
  const openKiB = await residentKiB(agent.pid)
  idle.kill('SIGKILL')
  await delay(1_000)

  const times: number[] = []
  for (let i = 0; i < execs; i++) {
    const beganMs = performance.now()
    await controller.kubectl('exec', 'files', '--', 'true')
    times.push(performance.now() - beganMs)
  }
  times.sort((a, b) => a - b)

  const ceiling = await streamCeiling(folder)
  const plain = await ceiling.plainTls(mib)
  const relay = await ceiling.relay(mib, costOf)
  const pids = [controller.program.pid, agent.pid]
  const logs = await costOf(pids, () => transfer('kubectl', [...kubeconfig, 'logs', 'logs']))
  const exec = await costOf(pids, () => transfer('kubectl', [...kubeconfig, 'exec', 'files', '--', 'cat', '/tmp/file']))
  const copied = join(folder, 'copied')
  const cp = await costOf(pids, async () => {
    const beganMs = performance.now()
    await controller.kubectl('cp', 'files:/tmp/file', copied)
    return (await stat(copied)).size / 2 ** 20 / ((performance.now() - beganMs) / 1000)
  })
  const forwarded = await costOf(pids, () => forward(kubeconfig))

  const row = (what: string, figure: string) => console.log(`| ${what} | ${figure} |`)
  const rate = (what: string, { perSecond, cpuMs }: Cost) => {
    const [ofController, ofAgent] = cpuMs.map((ms) => (ms / mib).toFixed(1))
    const ratio = (perSecond / plain).toFixed(2)
    row(
      what,
      `${perSecond.toFixed(0)} MiB/s, ratio ${ratio}; CPU per MiB: controller ${ofController} ms, agent ${ofAgent} ms`,
    )
  }
  console.log('| | |\n| --- | --- |')
  row(
    `kubectl exec -- true, median and highest of ${execs}`,
    `${times[execs >> 1]?.toFixed(0)} ms, ${times.at(-1)?.toFixed(0)} ms`,
  )
  row('plain TLS socket between two processes', `${plain.toFixed(0)} MiB/s`)
  rate('bare relay of as many processes', relay)
  rate('kubectl logs', logs)
  rate('kubectl exec -- cat', exec)
  rate('kubectl cp from a pod', cp)
  rate('kubectl port-forward', forwarded)
  row('agent resident: idle, with one idle stream', `${idleKiB} KiB, ${openKiB - idleKiB} KiB more`)
}

type Cost = { readonly perSecond: number; readonly cpuMs: readonly number[] }

/** The rate, and the CPU time of these processes meanwhile: it depends less on what else runs on the machine. */
async function costOf(pids: readonly number[], run: () => Promise<number>): Promise<Cost> {
  const before = await Promise.all(pids.map(cpuMsOf))
  const perSecond = await run()
  const after = await Promise.all(pids.map(cpuMsOf))
  return { perSecond, cpuMs: after.map((ms, i) => ms - (before[i] ?? 0)) }
}

/** In user and kernel mode (proc_pid_stat(5), fields 14 and 15, in hundredths of a second). */
async function cpuMsOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** Until the same is read twice. */
async function settled(read: () => Promise<string>): Promise<void> {
  let before = ''
  await eventually('the log is written', async () => {
    const now = await read()
    const isSame = now !== '' && now === before
    before = now
    await delay(500)
    return isSame
  })
}

async function transfer(command: string, args: readonly string[]): Promise<number> {
  const beganMs = performance.now()
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let bytes = 0
  child.stdout.on('data', (piece: Buffer) => {
    bytes += piece.length
  })
  await once(child, 'close')
  return bytes / 2 ** 20 / ((performance.now() - beganMs) / 1000)
}

async function forward(kubeconfig: readonly string[]): Promise<number> {
  const child = spawn('kubectl', [...kubeconfig, 'port-forward', 'pod/files', ':8080'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = once(child, 'close')
  try {
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const port = /:(\d+) ->/.exec(line.toString())?.[1]
    const beganMs = performance.now()
    const answer = await fetch(`http://127.0.0.1:${port}/file`)
    let bytes = 0
    for await (const piece of answer.body ?? []) bytes += piece.length
    return bytes / 2 ** 20 / ((performance.now() - beganMs) / 1000)
  } finally {
    child.kill('SIGKILL')
    await ended
  }
}

async function residentKiB(pid: number): Promise<number> {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1])
}

if (values.help) process.stdout.write(help)
else {
  try {
    await measure()
  } finally {
    for (const end of ends.reverse()) await end()
  }
}
