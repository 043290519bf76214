/** The unit of a program that is updated, as systemd shows it to others. */
import { execFile } from 'node:child_process'

export type ProgramUnit = {
  /** `stopped`: by an administrator. `failed`: systemd does not start it again. */
  readonly state: 'running' | 'starting' | 'stopped' | 'failed'
  /** Identifies the present start of the unit. */
  readonly invocation: string
  readonly exitStatus: number
}

const properties = ['ActiveState', 'Result', 'InvocationID', 'ExecMainStatus'] as const
const showMs = 10_000
const restartMs = 300_000

/** Rejects if systemd does not answer. */
export async function readUnit(unit: string): Promise<ProgramUnit> {
  return unitOf(await systemctl(['show', `--property=${properties}`, unit], showMs))
}

/** Also a unit that has failed. False: the start failed, and is systemd's to repeat. */
export async function restartUnit(unit: string): Promise<boolean> {
  return systemctl(['restart', unit], restartMs).then(
    () => true,
    () => false,
  )
}

/** `shown`: lines of `systemctl show`. */
export function unitOf(shown: string): ProgramUnit {
  const values = new Map(
    shown.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
  const [active = '', result = '', invocation = '', exitStatus = ''] = properties.map((name) => values.get(name))
  const states = { active: 'running', failed: 'failed', inactive: result === 'success' ? 'stopped' : 'failed' } as const
  const state = active in states ? states[active as keyof typeof states] : 'starting'
  return { state, invocation, exitStatus: Number(exitStatus) || 0 }
}

function systemctl(args: readonly string[], deadlineMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const settings = { timeout: deadlineMs, killSignal: 'SIGKILL' } as const
    execFile('systemctl', [...args], settings, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`systemctl ${args.join(' ')} failed: ${stderr.trim() || error.message}`))
    })
  })
}
