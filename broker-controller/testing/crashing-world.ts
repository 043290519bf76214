/** A world of workloads in which the process is killed again and again. */
import { workloadControllers } from '../controllers/workloads/workload-controllers.ts'
import { crashingStore } from './crashing-store.ts'
import { type WorkloadWorld, workloadWorld } from './workload-world.ts'

export interface CrashingWorld {
  readonly world: WorkloadWorld
  /** Starts the controllers `count` times; each process does less than `mostWrites` writes. Between them pods may start and end. */
  live(count: number, mostWrites: number): Promise<void>
  /** Starts a process that is not killed. */
  survive(): Promise<void>
  /** How many processes were killed before they had nothing left to write. */
  crashes(): number
}

/** `random` decides after how many writes a process is killed, and what happens between two of them. */
export async function crashingWorld(
  t: Parameters<typeof workloadWorld>[0],
  random: () => number,
): Promise<CrashingWorld> {
  let allow: (writes: number) => void = () => undefined
  let hasCrashed = () => false
  const world = await workloadWorld(t, {
    store(inner) {
      const crashing = crashingStore(inner)
      allow = crashing.allow
      hasCrashed = crashing.crashed
      return crashing.store
    },
  })
  let crashes = 0
  return {
    world,
    crashes: () => crashes,
    async live(count, mostWrites) {
      for (let life = 0; life < count; life++) {
        allow(Math.floor(random() * mostWrites))
        const end = world.start(workloadControllers(world.needs))
        await world.settle()
        await end()
        if (hasCrashed()) crashes++
        if (random() < 0.75) await world.runPods()
        if (random() < 0.7) await world.endPods()
      }
    },
    async survive() {
      allow(Number.POSITIVE_INFINITY)
      world.start(workloadControllers(world.needs))
      await world.settle()
    },
  }
}
