/** Whatever writes a crash leaves undone, the counts are those of the pods that ended. */
import { test } from 'tap'
import type { JobSpec } from '../../../../api/batch/job.ts'
import { seededRandom } from '../../../../daemon/testing/seeded-random.ts'
import type { StoredPod } from '../../../store/store.ts'
import type { CrashingStore } from '../../../testing/crashing-store.ts'
import { crashingJobWorld, type JobWorld } from '../../../testing/job-world.ts'
import { workloadControllers } from '../workload-controllers.ts'
import { isTracked } from './job-pods.ts'

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
      const random = seededRandom(seed)
      const { world, crashing } = await crashingJobWorld(t)
      await world.create(spec)
      const ended = await runWithCrashes(world, crashing, random)
      const job = await world.job()
      const { succeeded = 0, failed = 0, uncountedTerminatedPods, active = 0 } = job?.status ?? {}
      t.match(await world.conditions(), [/^(SuccessCriteriaMet|FailureTarget)$/, /^(Complete|Failed)$/], `seed ${seed}`)
      t.same({ succeeded, failed, active }, { ...ended(), active: 0 }, `seed ${seed}`)
      t.same(uncountedTerminatedPods, {}, `seed ${seed}`)
      t.notOk((await world.pods()).some(isTracked), `seed ${seed}`)
    }
  })
}

/** Kills and starts the controllers until the Job has ended. Returns how many pods ended, and how. */
async function runWithCrashes(
  world: JobWorld,
  crashing: CrashingStore,
  random: () => number,
): Promise<() => { readonly succeeded: number; readonly failed: number }> {
  const outcomes = new Map<string, 'succeeded' | 'failed'>()
  const endPod = async (pod: StoredPod, succeeds: boolean) => {
    await world.end(pod, succeeds ? 0 : 1)
    outcomes.set(pod.metadata.uid, succeeds ? 'succeeded' : 'failed')
  }
  const advancePod = async (pod: StoredPod) => {
    if (pod.metadata.deletionTimestamp !== undefined) await endPod(pod, false)
    else if (!pod.spec.nodeName) await world.store.update('pods', { ...pod, spec: { ...pod.spec, nodeName: 'pi-01' } })
    else if (random() >= 0.4) await endPod(pod, random() < 0.6)
  }
  const playNode = async () => {
    for (const pod of await world.pods()) {
      const { phase } = pod.status ?? {}
      if (phase !== 'Succeeded' && phase !== 'Failed') await advancePod(pod)
    }
  }
  for (let round = 0; round < 200; round++) {
    const stop = world.start(workloadControllers(world.needs))
    crashing.allow(round < 60 ? Math.floor(random() * 12) : Number.POSITIVE_INFINITY)
    for (let step = 0; step < 4 && !crashing.crashed(); step++) {
      await world.settle(15_000)
      await playNode()
    }
    await stop()
    crashing.allow(Number.POSITIVE_INFINITY)
    if ((await world.conditions()).length === 2) break
  }
  const last = world.start(workloadControllers(world.needs))
  await world.settle(15_000)
  await last()
  const count = (outcome: string) => [...outcomes.values()].filter((one) => one === outcome).length
  return () => ({ succeeded: count('succeeded'), failed: count('failed') })
}
