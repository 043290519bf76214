/** A controller in a temporary folder, and what its process uses: for the benchmarks of the API. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readKubeconfig } from '../../broker-controller/commands/connection/kubeconfig.ts'
import { startProgram } from '../../test/support/program.ts'
import { type ApiLoad, apiLoad } from './api-load.ts'

export type ApiServer = {
  readonly pid: number
  readonly load: ApiLoad
  /** Kubeconfig of an administrator. */
  readonly kubeconfig: string
  /** Removed with the server. */
  readonly folder: string
  /** Stops it and starts it with what it has stored: milliseconds until it is ready. `pid` and `load` are of no use afterwards. */
  startAgain(): Promise<number>
}

/** Starts the program, calls `act` and stops it. */
export async function withApiServer<T>(launcher: string, act: (server: ApiServer) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-api-'))
  const ends: (() => Promise<unknown>)[] = []
  try {
    const dataDir = join(folder, 'controller')
    const config = join(folder, 'controller.yaml')
    const file = { apiVersion: 'bramble.dev/v1alpha1', kind: 'ControllerConfiguration', podNetwork: 'node' }
    await writeFile(config, JSON.stringify(file))
    const where = ['--bind-address', '127.0.0.1', '--advertise-address', '127.0.0.1']
    const ports = ['--api-port', '0', '--mqtt-port', '0']
    const args = ['run', '--data-dir', dataDir, '--config', config, '--log-format', 'json', ...where, ...ports]
    const start = () => startProgram([launcher, ...args], (end) => void ends.push(end))
    let program = start()
    const ready = await program.logged('Controller ready')
    const kubeconfig = String(ready['kubeconfig'])
    const load = apiLoad(await readKubeconfig(kubeconfig))
    ends.push(async () => load.close())
    const startAgain = async () => {
      await program.stop()
      const began = performance.now()
      program = start()
      await program.logged('Controller ready')
      return performance.now() - began
    }
    return await act({ pid: program.pid, load, kubeconfig, folder, startAgain })
  } finally {
    for (const end of ends.reverse()) await end()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

export function quantile(all: readonly number[], part: number): number {
  const sorted = [...all].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}

export async function residentMB(pid: number): Promise<number> {
  return memoryMB(pid, 'VmRSS')
}

/** The highest since the start, or since `forgetPeak`. */
export async function peakMB(pid: number): Promise<number> {
  return memoryMB(pid, 'VmHWM')
}

/** proc(5), clear_refs: 5 resets the peak. */
export async function forgetPeak(pid: number): Promise<void> {
  await writeFile(`/proc/${pid}/clear_refs`, '5')
}

async function memoryMB(pid: number, field: 'VmRSS' | 'VmHWM'): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Math.round((Number(new RegExp(`^${field}:\\s*(\\d+)`, 'm').exec(status)?.[1]) * 1024) / 1e6)
}

/** Bytes that it caused to be written to the disk. */
export async function writtenBytes(pid: number): Promise<number> {
  const io = await readFile(`/proc/${pid}/io`, 'utf8')
  return Number(/^write_bytes: (\d+)$/m.exec(io)?.[1])
}

/** User and system time so far; the kernel counts in hundredths of a second. */
export async function cpuMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}
