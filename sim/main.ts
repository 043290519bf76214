/** Runs simulated worlds. `--help` prints the usage. */
import { parseArgs } from 'node:util'
import { isPlantedFault, plant, plantedNames } from './planted/plant.ts'

const { planted, worker } = parseArgs({
  options: { planted: { type: 'string' }, worker: { type: 'boolean' } },
  strict: false,
}).values

if (typeof planted === 'string' && !isPlantedFault(planted)) {
  console.error(`--planted must be one of ${plantedNames.join(', ')}`)
  process.exitCode = 2
} else {
  // Before any of the programs is loaded.
  if (typeof planted === 'string') plant(planted)
  if (worker === true) await import('./seeds/seed-worker.ts')
  else await import('./command.ts')
}
