/** Compares the cost of reading all eviction signals with systeminformation's. `--help` prints the usage. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import si from 'systeminformation'
import { hostSignals } from '../agent/adapters/kernel/host-signals.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

type Look = {
  readonly name: string
  readonly looks: number
  readonly look: () => Promise<unknown>
  /** Between two looks: an answer is given again for half a second. */
  readonly pauseMs?: number
}
type Figures = {
  readonly name: string
  readonly tookMs: number
  readonly ownMs: number
  readonly childMs: number
  readonly started: number
  readonly writtenBytes: number
}

const rounds = 3
const { reads: looks } = benchmarkOptions({
  name: 'node dist/bench/signals.js',
  text: `Compares the cost of reading all eviction signals with that of systeminformation's calls for the same values, on this machine, in turns,
in ${rounds} rounds. Prints a table. CPU time is that of the process and of the programs it starts, as the kernel counts it.

Needs root: to count the programs it starts and no others, it runs in a process namespace of its own, in which the last process ID rises by one with
each of them.`,
  options: { reads: { value: 'N', help: 'reads of all signals in a round', range: [1, 1_000_000], default: '300' } },
})
const ticksPerSecond = 100
const rarely = { looks: 6, pauseMs: 700 }

if (process.env.BENCH_ALONE === '1') console.log(await compared())
else alone()

function alone(): void {
  const script = [process.execPath, fileURLToPath(import.meta.url), '--reads', String(looks)]
  const options = { stdio: 'inherit', env: { ...process.env, BENCH_ALONE: '1' } } as const
  const { status, error } = spawnSync('unshare', ['--pid', '--fork', '--mount-proc', ...script], options)
  if (error !== undefined) throw error
  process.exitCode = status ?? 1
}

async function compared(): Promise<string> {
  const source = hostSignals({ root: '/', dataDirectory: tmpdir(), imageDirectory: () => '/' })
  const ways: readonly Look[] = [
    { name: 'all signals, from files', looks, look: () => source.observe() },
    { name: 'systeminformation: mem', ...rarely, look: () => si.mem() },
    { name: 'systeminformation: fsSize', ...rarely, look: () => si.fsSize() },
    { name: 'systeminformation: processes', ...rarely, look: () => si.processes() },
    {
      name: 'systeminformation: all three',
      ...rarely,
      look: () => Promise.all([si.mem(), si.fsSize(), si.processes()]),
    },
  ]
  const rows = new Map<string, Figures[]>()
  for (const { look } of ways) await look()
  for (let round = 0; round < rounds; round++) {
    for (const way of ways) rows.set(way.name, [...(rows.get(way.name) ?? []), await measured(way)])
  }
  return table([...rows.values()].map(median))
}

async function measured({ name, looks: times, look, pauseMs = 0 }: Look): Promise<Figures> {
  const [cpu, before] = [process.cpuUsage(), account()]
  let tookMs = 0
  for (let i = 0; i < times; i++) {
    const beganMs = performance.now()
    await look()
    tookMs += performance.now() - beganMs
    if (pauseMs > 0) await pause(pauseMs)
  }
  const { user, system } = process.cpuUsage(cpu)
  const after = account()
  return {
    name,
    tookMs: tookMs / times,
    ownMs: (user + system) / 1000 / times,
    childMs: ((after.childTicks - before.childTicks) * 1000) / ticksPerSecond / times,
    started: (after.lastProcess - before.lastProcess) / times,
    writtenBytes: (after.writtenBytes - before.writtenBytes) / times,
  }
}

function account() {
  const own = readFileSync('/proc/self/stat', 'utf8')
  const fields = own.slice(own.lastIndexOf(')') + 2).split(' ')
  return {
    // cutime and cstime, 16 and 17 of all fields; what is cut off has two.
    childTicks: Number(fields[13]) + Number(fields[14]),
    lastProcess: Number(readFileSync('/proc/loadavg', 'utf8').trim().split(' ').at(-1)),
    writtenBytes: Number(/^write_bytes: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]),
  }
}

function median(figures: readonly Figures[]): Figures {
  const [, middle] = figures.toSorted((a, b) => a.ownMs + a.childMs - b.ownMs - b.childMs)
  if (middle === undefined) throw new Error('Nothing was measured')
  return middle
}

function table(figures: readonly Figures[]): string {
  const head = ['what', 'took', 'own processor time', 'of programs started', 'processes started', 'bytes written']
  const lines = figures.map(({ name, tookMs, ownMs, childMs, started, writtenBytes }) => [
    name,
    `${tookMs.toFixed(2)} ms`,
    `${ownMs.toFixed(2)} ms`,
    childMs === 0 ? '0' : `${childMs.toFixed(0)} ms`,
    started.toFixed(started < 0.1 ? 0 : 1),
    String(Math.round(writtenBytes)),
  ])
  return [head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
