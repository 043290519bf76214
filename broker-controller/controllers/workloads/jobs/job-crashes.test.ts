/** Whatever writes a crash leaves undone, the counts are those of the pods that ended. */
import { test } from 'tap'
import type { JobSpec } from '../../../../api/batch/job.ts'
import type { Store } from '../../../store/store.ts'
import { actingOn, type JobWorld } from '../../../testing/job-world.ts'
import { type WorkloadWorld, workloadWorld } from '../../../testing/workload-world.ts'
import { workloadControllers } from '../workload-controllers.ts'
import { isTracked } from './job-pods.ts'

type Random = () => number
type Crashes = {
  readonly store: (store: Store) => Store
  arm(writes: number): void
  readonly hasCrashed: () => boolean
}

/** mulberry32: the same numbers for the same seed. */
function randomOf(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A store that does so many writes more, and none after that; half of the time it still does the last one, unanswered. */
function crashes(random: Random): Crashes {
  let left = Number.POSITIVE_INFINITY
  const write = async <T>(act: () => Promise<T>): Promise<T> => {
    left--
    if (left > 0) return await act()
    if (left === 0 && random() < 0.5) await act()
    throw new Error('the process was killed')
  }
  return {
    arm(writes) {
      left = writes
    },
    hasCrashed: () => left <= 0,
    store: (store) => ({
      ...store,
      create: (resource, object) => write(() => store.create(resource, object)),
      update: (resource, object) => write(() => store.update(resource, object)),
      updateStatus: (resource, object) => write(() => store.updateStatus(resource, object)),
      delete: (resource, key, conditions) => write(() => store.delete(resource, key, conditions)),
    }),
  }
}

const kinds: { readonly [name: string]: Partial<JobSpec> } = {
  plain: { completions: 5, parallelism: 3, backoffLimit: 100 },
  'work queue': { parallelism: 3, backoffLimit: 100 },
  indexed: { completionMode: 'Indexed', completions: 5, parallelism: 3, backoffLimit: 100 },
  'limited per index': { completionMode: 'Indexed', completions: 4, parallelism: 2, backoffLimitPerIndex: 1 },
  'limited in all': { completions: 5, parallelism: 3, backoffLimit: 2 },
}

for (const [name, spec] of Object.entries(kinds)) {
  test(`a Job (${name}) counts each pod once through crashes after any write`, async (t) => {
    for (let seed = 1; seed <= 12; seed++) {
      const random = randomOf(seed)
      const crashing = crashes(random)
      const world = await workloadWorld(t, crashing)
      const acting = actingOn(world)
      await acting.create(spec)
      const ended = await runWithCrashes(world, acting, crashing, random)
      const job = await acting.job()
      const { succeeded = 0, failed = 0, uncountedTerminatedPods, active = 0 } = job?.status ?? {}
      t.match(
        await acting.conditions(),
        [/^(SuccessCriteriaMet|FailureTarget)$/, /^(Complete|Failed)$/],
        `seed ${seed}`,
      )
      t.same({ succeeded, failed, active }, { ...ended(), active: 0 }, `seed ${seed}`)
      t.same(uncountedTerminatedPods, {}, `seed ${seed}`)
      t.notOk((await world.pods()).some(isTracked), `seed ${seed}`)
    }
  })
}

/** Kills and starts the controllers until the Job has ended. Returns how many pods ended, and how. */
async function runWithCrashes(
  world: WorkloadWorld,
  acting: JobWorld,
  crashing: Crashes,
  random: Random,
): Promise<() => { readonly succeeded: number; readonly failed: number }> {
  const outcomes = new Map<string, 'succeeded' | 'failed'>()
  const playNode = async () => {
    for (const pod of await world.pods()) {
      const { phase } = pod.status ?? {}
      if (phase === 'Succeeded' || phase === 'Failed') continue
      const isLeaving = pod.metadata.deletionTimestamp !== undefined
      if (!isLeaving && !pod.spec.nodeName) {
        await world.store.update('pods', { ...pod, spec: { ...pod.spec, nodeName: 'pi-01' } })
        continue
      }
      if (!isLeaving && random() < 0.4) continue
      const succeeds = !isLeaving && random() < 0.6
      await acting.end(pod, succeeds ? 0 : 1)
      outcomes.set(pod.metadata.uid, succeeds ? 'succeeded' : 'failed')
    }
  }
  for (let round = 0; round < 200; round++) {
    const stop = world.start(workloadControllers(world.needs))
    crashing.arm(round < 60 ? 1 + Math.floor(random() * 12) : Number.POSITIVE_INFINITY)
    for (let step = 0; step < 4 && !crashing.hasCrashed(); step++) {
      await world.settle(15_000)
      await playNode()
    }
    await stop()
    crashing.arm(Number.POSITIVE_INFINITY)
    if ((await acting.conditions()).length === 2) break
  }
  const last = world.start(workloadControllers(world.needs))
  await world.settle(15_000)
  await last()
  const count = (outcome: string) => [...outcomes.values()].filter((one) => one === outcome).length
  return () => ({ succeeded: count('succeeded'), failed: count('failed') })
}
