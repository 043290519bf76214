/** Whatever writes a crash leaves undone, each time has one Job, and with Forbid one Job runs at a time. */
import { test } from 'tap'
import { finishedConditionOf } from '../../../../api/batch/job.ts'
import { utc } from '../../../../api/batch/time-zone.ts'
import { seededRandom } from '../../../../daemon/testing/seeded-random.ts'
import { crashingJobWorld, jobTemplate } from '../../../testing/job-world.ts'
import { workloadControllers } from '../workload-controllers.ts'

for (const concurrencyPolicy of ['Allow', 'Forbid']) {
  test(`a CronJob (${concurrencyPolicy}) keeps its promise through crashes after any write`, async (t) => {
    for (let seed = 1; seed <= 12; seed++) {
      const random = seededRandom(seed)
      const { world, crashing } = await crashingJobWorld(t)
      const spec = {
        schedule: '* * * * *',
        concurrencyPolicy,
        successfulJobsHistoryLimit: 1000,
        jobTemplate: { spec: { template: jobTemplate() } },
      }
      const metadata = { name: 'tick', namespace: 'default' }
      await world.needs.creation.create('cronjobs', { apiVersion: 'batch/v1', kind: 'CronJob', metadata, spec }, 'test')
      const jobs = async () => (await world.store.list('jobs')).items
      const uids = new Map<string, string>()
      let mostRunning = 0
      const lifeOfControllers = async () => {
        const stop = world.start(workloadControllers(world.needs, utc))
        crashing.allow(Math.floor(random() * 15))
        for (let step = 0; step < 3 && !crashing.crashed(); step++) {
          await world.settle(20_000)
          for (const pod of await world.running()) if (random() < 0.5) await world.end(pod, 0)
        }
        await stop()
        crashing.allow(Number.POSITIVE_INFINITY)
      }
      for (let round = 0; round < 40; round++) {
        await lifeOfControllers()
        const running = (await jobs()).filter((job) => finishedConditionOf(job) === undefined)
        mostRunning = Math.max(mostRunning, running.length)
        for (const { metadata: one } of await jobs()) {
          t.ok((uids.get(one.name) ?? one.uid) === one.uid, `seed ${seed}: ${one.name} is created once`)
          uids.set(one.name, one.uid)
        }
      }
      t.ok(uids.size > 2, `seed ${seed}: ${uids.size} Jobs`)
      if (concurrencyPolicy === 'Forbid') t.equal(mostRunning, 1, `seed ${seed}`)
      const last = world.start(workloadControllers(world.needs, utc))
      for (let step = 0; step < 3; step++) await world.endAll(0)
      await last()
      const status = (await world.store.get('cronjobs', { namespace: 'default', name: 'tick' }))?.status
      const left = (await jobs()).filter((job) => finishedConditionOf(job) === undefined)
      t.same((status?.active ?? []).map(({ name }) => name).sort(), left.map((job) => job.metadata.name).sort())
    }
  })
}
