/** Which version of the controller runs here, and whether it may be taken back. */
import { version } from '../../daemon/process/version.ts'
import type { RunningController } from '../controllers/rollouts/controller-first.ts'
import { isThere } from '../data-directory/backup.ts'
import { controllerTrialMark } from './update-table.ts'

export async function runningController(): Promise<RunningController> {
  return { version, isOnTrial: await isThere(controllerTrialMark) }
}
