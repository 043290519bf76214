/** Updates of the agent and of the operating system: what the controller wants, and what became of it. */
import { join } from 'node:path'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { osFiles } from '../adapters/updates/os-files.ts'
import { updateFiles } from '../adapters/updates/update-files.ts'
import { updateDefaults } from '../commands/update-table.ts'
import type { AgentConfiguration } from '../configuration.ts'
import { osUpdatesManager } from '../updates/os-updates-manager.ts'
import { updateManager } from '../updates/update-manager.ts'
import type { AgentBoard, WriteEnds } from './board.ts'
import type { AgentMachine } from './machine.ts'

export type UpdateParts = {
  readonly root: string
  readonly dataDir: string
  readonly configuration: Pick<AgentConfiguration, 'downloads' | 'osUpgrades' | 'metered'>
  readonly board: AgentBoard
  readonly write: WriteEnds
  readonly machine: Pick<AgentMachine, 'watch'>
  readonly log: Log
}

export function assembleUpdates(parts: UpdateParts): readonly Loop[] {
  const { root, dataDir, configuration, board, write, machine, log } = parts
  const [folder, ofPackage] = [join(root, updateDefaults.folder), join(root, updateDefaults.package)]
  const ofAgent = updateManager({
    files: updateFiles({ folder, package: ofPackage, dataDir, log }),
    rules: configuration.downloads,
    reads: board,
    writes: write('updateReport', 'updateConditions'),
    clock: machine.watch.clockFor('agent-update'),
    log,
  })
  const ofSystem = osUpdatesManager({
    files: osFiles(root),
    settings: { isEnabled: configuration.osUpgrades, isMetered: configuration.metered },
    reads: board,
    writes: write('osReport', 'osConditions'),
    clock: machine.watch.clockFor('os-updates'),
    log,
  })
  return [ofAgent, ofSystem]
}
