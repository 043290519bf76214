/** Whether the package's units start the agent of a machine that has just joined. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { agentDefaults } from '../commands/command-table.ts'

const pathUnit = '/etc/systemd/system/multi-user.target.wants/bramble-agent.path'

/**
 * True where systemd runs and `bramble-agent.path` is enabled, which starts the service when the identity appears in the default data
 * directory. `root`: where the files of the machine are.
 */
export function isStartedBySystemd(root: string, dataDir: string): boolean {
  if (dataDir !== agentDefaults.dataDir) return false
  // sd_booted(3): this folder exists where systemd is the init system.
  return existsSync(join(root, '/run/systemd/system')) && existsSync(join(root, pathUnit))
}
