/** The agent's unit of systemd, seen by other programs. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import type { TrialLook } from '../../../daemon/updates/trial-verdict.ts'
import { runTool } from '../network/run-tool.ts'

const unit = 'bramble-agent.service'
/** The agent reads it when it is stopped: the reason in its goodbye message. */
const upgradeMark = '/run/bramble/agent-upgrade'
const properties = ['ActiveState', 'Result', 'InvocationID', 'ExecMainStatus'] as const

/** Rejects if systemd does not answer. */
export async function readAgentUnit(): Promise<TrialLook['unit']> {
  const { code, stdout, stderr } = await runTool(
    'systemctl',
    ['show', `--property=${properties}`, unit],
    undefined,
    10_000,
  )
  if (code !== 0) throw new Error(`systemctl does not show ${unit}: ${stderr.trim()}`)
  return unitOf(stdout)
}

/** Identifies this boot and the start of Docker's unit: without live restore containers outlive neither. */
export async function containersEpoch(): Promise<string> {
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  const { stdout } = await runTool(
    'systemctl',
    ['show', '--property=InvocationID', '--value', 'docker.service'],
    undefined,
    10_000,
  )
  return `${boot}/${stdout.trim()}`
}

/** `shown`: lines of `systemctl show`. */
export function unitOf(shown: string): TrialLook['unit'] {
  const values = new Map(
    shown.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
  const [active = '', result = '', invocation = '', exitStatus = ''] = properties.map((name) => values.get(name))
  const states = { active: 'running', failed: 'failed', inactive: result === 'success' ? 'stopped' : 'failed' } as const
  const state = active in states ? states[active as keyof typeof states] : 'starting'
  return { state, invocation, exitStatus: Number(exitStatus) || 0 }
}

/**
 * Restarts the agent, also one that has failed: its node announces an upgrade to the controller. A start that fails is systemd's to repeat;
 * false then.
 */
export async function restartAgent(): Promise<boolean> {
  await mkdir('/run/bramble', { recursive: true })
  await writeFile(upgradeMark, '')
  try {
    return (await runTool('systemctl', ['restart', unit], undefined, 300_000)).code === 0
  } finally {
    await rm(upgradeMark, { force: true })
  }
}
