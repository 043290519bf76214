/** Updates of the agent: the release that the controller wants, and what became of it. */
import { join } from 'node:path'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { updateFiles } from '../adapters/updates/update-files.ts'
import { updateDefaults } from '../commands/update-table.ts'
import type { AgentConfiguration } from '../configuration.ts'
import { updateManager } from '../updates/update-manager.ts'
import type { AgentBoard, WriteEnds } from './board.ts'
import type { AgentMachine } from './machine.ts'

export type UpdateParts = {
  readonly root: string
  readonly dataDir: string
  readonly configuration: Pick<AgentConfiguration, 'downloads'>
  readonly board: AgentBoard
  readonly write: WriteEnds
  readonly machine: Pick<AgentMachine, 'watch'>
  readonly log: Log
}

export function assembleUpdates({ root, dataDir, configuration, board, write, machine, log }: UpdateParts): Loop {
  const [folder, ofPackage] = [join(root, updateDefaults.folder), join(root, updateDefaults.package)]
  return updateManager({
    files: updateFiles({ folder, package: ofPackage, dataDir, log }),
    rules: configuration.downloads,
    reads: board,
    writes: write('updateReport', 'updateConditions'),
    clock: machine.watch.clockFor('agent-update'),
    log,
  })
}
