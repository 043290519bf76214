import type { WorldKind } from './worlds.ts'

/** Seeds that found faults, with what they found: they are run again with each change. */

export type KeptSeed = {
  readonly seed: number
  readonly why: string
  /** By default `workloads`. */
  readonly world?: WorldKind
  readonly nodes?: number
  readonly faultMinutes?: number
  readonly skipped?: readonly number[]
}

/** Short worlds: the unit tests run them all. */
export const keptSeeds: readonly KeptSeed[] = [
  { seed: 1, why: 'partitions, power cuts and deaths of Docker', faultMinutes: 15 },
  { seed: 115, why: 'a node comes back while the controller stands still for eight minutes, and keeps its pods' },
  {
    seed: 210,
    why: 'a pod that was leaving runs again after a reboot, and is not replaced before its node has stopped it',
  },
  {
    ...{ seed: 215, nodes: 2, faultMinutes: 3, skipped: [1, 2] },
    why: 'a node comes back while the store cannot be written, and keeps its pods when it can',
  },
  {
    ...{ seed: 256, nodes: 2, skipped: Array.from({ length: 23 }, (_, i) => i + 1) },
    why: 'pods that wait for an image that another one pulls start when it is there',
  },
  {
    ...{ seed: 6_534_279, world: 'restores', faultMinutes: 10 },
    why: 'a status that was on its way makes a node Ready again, and its pods, which were marked, are Ready again, too',
  },
  {
    ...{ seed: 470, world: 'claims', faultMinutes: 10 },
    why: 'a Job whose pod failed while the date of the controller was 400 days ahead gets another pod',
  },
  {
    ...{ seed: 82_280_938, world: 'controllers', faultMinutes: 10 },
    why: 'a controller that begins to lead while no node is ready taints none',
  },
  {
    ...{ seed: 88_919_005, world: 'budgets' },
    why: 'pods stay on a node that came back, and went again, while the store could not be written',
  },
]
