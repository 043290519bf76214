/** What passes between the process that hands out seeds and those that run them. */
import type { WorldSize } from '../shrink.ts'
import type { SimulationResult } from '../simulation.ts'
import type { ScriptCoverage } from '../story/lines-run.ts'
import type { WorldKind } from '../worlds.ts'

export type SeedOrder = { readonly seed: number; readonly world: WorldKind; readonly size: WorldSize }

/** `story`: of a world that holds, empty. `ms`: how long it took. */
export type SeedReport = Pick<SimulationResult, 'seed' | 'story' | 'violations' | 'simulatedMs' | 'coverage'> & {
  readonly ms: number
}

/** To a process: a seed, or that its lines are wanted and it shall end. */
export type ToWorker = { readonly order: SeedOrder } | 'lines'
/** From a process. */
export type FromWorker = { readonly report: SeedReport } | { readonly lines: readonly ScriptCoverage[] }
