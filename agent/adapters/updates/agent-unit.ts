/** The agent's unit of systemd, seen by other programs. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { type ProgramUnit, readUnit, restartUnit } from '../../../daemon/updates/program-unit.ts'
import { runTool } from '../network/run-tool.ts'

const unit = 'bramble-agent.service'
/** The agent reads it when it is stopped: the reason in its goodbye message. */
const upgradeMark = '/run/bramble/agent-upgrade'

/** Rejects if systemd does not answer. */
export async function readAgentUnit(): Promise<ProgramUnit> {
  return readUnit(unit)
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

/**
 * Restarts the agent, also one that has failed: its node announces an upgrade to the controller. A start that fails is systemd's to repeat;
 * false then.
 */
export async function restartAgent(): Promise<boolean> {
  await mkdir('/run/bramble', { recursive: true })
  await writeFile(upgradeMark, '')
  try {
    return await restartUnit(unit)
  } finally {
    await rm(upgradeMark, { force: true })
  }
}
