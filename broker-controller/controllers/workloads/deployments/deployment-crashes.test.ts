import { type Test, test } from 'tap'
import type { Deployment, DeploymentSpec } from '../../../../api/workloads/deployment.ts'
import { type CrashingStore, crashingStore } from '../../../testing/crashing-store.ts'
import { type WorkloadWorld, workloadWorld } from '../../../testing/workload-world.ts'
import { workloadControllers } from '../workload-controllers.ts'

const labels = { app: 'web' }
const change = (world: WorkloadWorld, more: (spec: DeploymentSpec) => Partial<DeploymentSpec>) =>
  world.edit('deployments', 'web', (one) => ({ ...one, spec: { ...one.spec, ...more(one.spec) } }))
const image = (to: string) => (spec: DeploymentSpec) => ({
  template: { ...spec.template, spec: { ...spec.template.spec, containers: [{ name: 'main', image: to }] } },
})

const scenarios: { readonly [name: string]: Partial<DeploymentSpec> } = {
  'rolling update': { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } } },
  recreate: { strategy: { type: 'Recreate' }, revisionHistoryLimit: 0 },
}

/** Runs the story with a controller that is gone after this many writes and starts again; `undefined`: it stays. */
async function endOf(t: Test, spec: Partial<DeploymentSpec>, crashAfter: number | undefined) {
  let crashing: CrashingStore | undefined
  const world = await workloadWorld(t, {
    store(inner) {
      crashing = crashingStore(inner)
      return crashing.store
    },
  })
  let stop = world.start(workloadControllers(world.needs))
  let most = 0
  const rest = async () => {
    for (let turn = 0; turn < 6; turn++) {
      if (crashing?.crashed()) {
        await stop()
        crashing.allow(Infinity)
        stop = world.start(workloadControllers(world.needs))
      }
      await world.settle()
      await world.runPods()
      await world.settle()
      await world.endPods()
      const active = (await world.pods()).filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      most = Math.max(most, active.length)
    }
  }
  const deployment: Deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      replicas: 3,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'web:1' }] } },
      ...spec,
    },
  }
  await world.needs.creation.create('deployments', deployment, 'test')
  crashing?.allow(crashAfter ?? Infinity)
  await rest()
  await change(world, image('web:2'))
  await rest()
  await change(world, (one) => ({ replicas: 5, ...image('web:3')(one) }))
  await rest()
  await rest()
  const written = crashing?.written() ?? 0
  await stop()
  t.ok(most <= 6, 'no pod is started twice')
  const sets = (await world.store.list('replicasets')).items.map(({ metadata, spec: { replicas, template } }) => ({
    image: template.spec.containers[0]?.image,
    replicas,
    revision: metadata.annotations?.['deployment.kubernetes.io/revision'],
  }))
  const pods = (await world.pods()).map((pod) => pod.spec.containers[0]?.image)
  const stored = await world.store.get('deployments', { namespace: 'default', name: 'web' })
  const { conditions = [], ...counts } = stored?.status ?? {}
  const reasons = conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`).sort()
  const order = (a: { image?: string | undefined }, b: { image?: string | undefined }) =>
    (a.image ?? '') < (b.image ?? '') ? -1 : 1
  return { written, end: { sets: sets.sort(order), pods, counts, reasons } }
}

for (const [name, spec] of Object.entries(scenarios)) {
  test(`${name}: a crash after any write ends in the same place`, async (t) => {
    const { written, end } = await endOf(t, spec, undefined)
    t.ok(written > 20, `${written} writes`)
    t.match(end, { pods: { length: 5 }, counts: { replicas: 5, updatedReplicas: 5, availableReplicas: 5 } })
    for (let after = 0; after < written; after += 1) {
      const crashed = await endOf(t, spec, after)
      t.same(crashed.end, end, `a crash after ${after} writes`)
    }
  })
}
