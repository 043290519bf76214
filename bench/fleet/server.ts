/** The controller under load, in a process of its own, and its figures from /proc. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Front } from './front.ts'
import { type ProcessFigures, processFigures } from './process-figures.ts'

const ownLauncher = fileURLToPath(new URL('../../../scripts/bramble-controller', import.meta.url))

export type Ports = { readonly api: number; readonly mqtt: number }
export type ServerSettings = {
  /** `main.js` of the build that is measured; undefined: the bundle, with the settings of its launcher. */
  readonly main: string | undefined
  /** Without `main`: the launcher of the bundle; undefined: that of this tree. */
  readonly launcher?: string | undefined
  readonly dataDir: string
  readonly config: string
  readonly ports: Ports
  /** Options of Node, as `--cpu-prof`. */
  readonly nodeOptions: readonly string[]
  /** Called when the controller is ready; its figures are added to those of the controller. */
  readonly front?: (ports: Ports) => Promise<Front>
}

export interface RunningServer extends ProcessFigures {
  readonly ports: Ports
  readonly front: Front | undefined
  /** Resolves when it used less than 5 % of a core for two seconds. */
  idle(): Promise<void>
  /**
   * Resolves when the CPU use of four seconds is no longer below nine tenths of that of the four before, or below 5 % of a core.
   * False: it still fell after `mostMs`.
   */
  steady(mostMs: number): Promise<boolean>
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

/** Resolves when the controller logs that it is ready. */
export async function startServer({
  main,
  launcher = ownLauncher,
  dataDir,
  config,
  ports,
  nodeOptions,
  front: startFront,
}: ServerSettings): Promise<RunningServer> {
  const args = ['--data-dir', dataDir, '--config', config, '--log-format', 'json']
  const where = ['--api-port', String(ports.api), '--mqtt-port', String(ports.mqtt)]
  const [command, ...options] = main === undefined ? [launcher, 'run'] : [process.execPath, ...nodeOptions, main]
  const child = spawn(command, [...options, ...args, ...where], { stdio: ['ignore', 'pipe', 'inherit'] })
  const opened = await ready(child)
  const front = await startFront?.(opened)
  const own = processFigures(child.pid ?? 0)
  const cpuMs = () => own.cpuMs() + (front?.cpuMs() ?? 0)
  return {
    ports: opened,
    front,
    cpuMs,
    residentBytes: () => own.residentBytes() + (front?.residentBytes() ?? 0),
    writtenBytes: own.writtenBytes,
    async idle() {
      for (let quiet = 0; quiet < 4; ) {
        const before = cpuMs()
        await delay(500)
        quiet = cpuMs() - before <= 25 ? quiet + 1 : 0
      }
    },
    async steady(mostMs) {
      const used: number[] = []
      for (const untilMs = performance.now() + mostMs; performance.now() < untilMs; ) {
        const before = cpuMs()
        await delay(windowMs)
        used.push(cpuMs() - before)
        const [earlier, late] = [sum(used.slice(-8, -4)), sum(used.slice(-4))]
        if (used.length >= 8 && (late >= 0.9 * earlier || late <= 0.05 * 4 * windowMs)) return true
      }
      return false
    },
    async end(signal) {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill(signal)
      await exited
    },
  }
}

const windowMs = 1000
const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

async function ready(child: ChildProcess): Promise<Ports> {
  if (child.stdout === null) throw new Error('The controller has no output')
  const lines = createInterface({ input: child.stdout })
  return await new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`The controller ended with ${code} before it was ready`)))
    lines.on('line', (line) => {
      if (process.env.BENCH_LOG === '1') console.error(line.slice(0, 300))
      if (!line.includes('"Controller ready"')) return
      const { api, mqtt } = JSON.parse(line) as { api: string; mqtt: string }
      resolve({ api: Number(new URL(api).port), mqtt: Number(new URL(mqtt).port) })
    })
  })
}
