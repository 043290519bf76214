import { test } from 'tap'
import type { DeploymentSpec } from '../../../../api/workloads/deployment.ts'
import { type WorkloadWorld, workloadWorld } from '../../../testing/workload-world.ts'
import { workloadControllers } from '../workload-controllers.ts'

type Test = Parameters<typeof workloadWorld>[0]
const labels = { app: 'web' }
const templateOf = (image: string) => ({ metadata: { labels }, spec: { containers: [{ name: 'main', image }] } })

async function started(t: Test, spec: Partial<DeploymentSpec> = {}): Promise<WorkloadWorld> {
  const world = await workloadWorld(t)
  world.start(workloadControllers(world.needs))
  await world.settle()
  await deploy(world, spec)
  await world.settle()
  return world
}

const deploy = (world: WorkloadWorld, spec: Partial<DeploymentSpec> = {}) =>
  world.needs.creation.create(
    'deployments',
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace: 'default', annotations: { 'kubernetes.io/change-cause': 'first' } },
      spec: { replicas: 4, selector: { matchLabels: labels }, template: templateOf('web:1'), ...spec },
    },
    'test',
  )
const edit = (world: WorkloadWorld, change: (spec: DeploymentSpec) => Partial<DeploymentSpec>) =>
  world.edit('deployments', 'web', (one) => ({ ...one, spec: { ...one.spec, ...change(one.spec) } }))
const setImage = (world: WorkloadWorld, image: string) =>
  edit(world, ({ template }) => {
    const [main] = template.spec.containers
    return { template: { ...template, spec: { ...template.spec, containers: main ? [{ ...main, image }] : [] } } }
  })
const deploymentOf = async ({ store }: WorkloadWorld) => {
  const found = await store.get('deployments', { namespace: 'default', name: 'web' })
  if (found === undefined) throw new Error('no Deployment')
  return found
}
const setsOf = async ({ store }: WorkloadWorld) => (await store.list('replicasets')).items
/** `web:1 4`: the sizes of the ReplicaSets, by image. */
const sizesOf = async (world: WorkloadWorld) =>
  (await setsOf(world)).map(({ spec }) => `${spec.template.spec.containers[0]?.image} ${spec.replicas}`).sort()
const conditionOf = async (world: WorkloadWorld, type: string) =>
  (await deploymentOf(world)).status?.conditions?.find((condition) => condition.type === type)
/** Nodes run and end pods until the rollout has nothing to do any more. */
async function rollOut(world: WorkloadWorld, check: () => Promise<void> = async () => {}): Promise<void> {
  for (let turn = 0; turn < 20; turn++) {
    await world.runPods()
    await world.settle()
    await check()
    await world.endPods()
    await world.settle()
    await check()
  }
}

test('a Deployment makes a ReplicaSet of its template, and is complete when its pods are available', async (t) => {
  const world = await started(t)
  const [set] = await setsOf(world)
  const hash = set?.metadata.labels?.['pod-template-hash'] ?? ''
  t.match(hash, /^[bcdfghjklmnpqrstvwxz2456789]{6,10}$/)
  t.match(set, {
    metadata: {
      name: `web-${hash}`,
      annotations: {
        'deployment.kubernetes.io/revision': '1',
        'deployment.kubernetes.io/desired-replicas': '4',
        'deployment.kubernetes.io/max-replicas': '5',
        'kubernetes.io/change-cause': 'first',
      },
    },
    spec: { replicas: 4, selector: { matchLabels: { app: 'web', 'pod-template-hash': hash } } },
  })
  t.equal((await world.pods())[0]?.metadata.labels?.['pod-template-hash'], hash)
  t.match(await deploymentOf(world), {
    metadata: { generation: 1, annotations: { 'deployment.kubernetes.io/revision': '1' } },
    status: { observedGeneration: 1, replicas: 4, updatedReplicas: 4, unavailableReplicas: 4 },
  })
  t.match(await conditionOf(world, 'Available'), { status: 'False', reason: 'MinimumReplicasUnavailable' })
  await rollOut(world)
  t.match((await deploymentOf(world)).status, {
    readyReplicas: 4,
    availableReplicas: 4,
    unavailableReplicas: undefined,
  })
  t.match(await conditionOf(world, 'Available'), { status: 'True', reason: 'MinimumReplicasAvailable' })
  t.match(await conditionOf(world, 'Progressing'), {
    status: 'True',
    reason: 'NewReplicaSetAvailable',
    message: `ReplicaSet "web-${hash}" has successfully progressed.`,
  })
  t.ok((await world.events()).includes('ScalingReplicaSet'))
})

test('a rolling update never has more pods than maxSurge allows, nor fewer than maxUnavailable', async (t) => {
  const rollingUpdate = { maxSurge: '25%', maxUnavailable: 1 }
  const world = await started(t, { strategy: { type: 'RollingUpdate', rollingUpdate } })
  await rollOut(world)
  await setImage(world, 'web:2')
  await world.settle()
  let most = 0
  let least = Infinity
  await rollOut(world, async () => {
    const active = (await world.pods()).filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    const ready = active.filter(({ status }) => status?.conditions?.some((one) => one.status === 'True'))
    most = Math.max(most, active.length)
    least = Math.min(least, ready.length)
  })
  t.ok(most <= 5, `${most} pods`)
  t.ok(least >= 3, `${least} available`)
  t.same(await sizesOf(world), ['web:1 0', 'web:2 4'])
  t.match((await deploymentOf(world)).status, { updatedReplicas: 4, replicas: 4, availableReplicas: 4 })
})

test('an update whose pods do not become ready stops, and times out after its progress deadline', async (t) => {
  const world = await started(t, { progressDeadlineSeconds: 60 })
  await rollOut(world)
  await setImage(world, 'web:broken')
  for (let turn = 0; turn < 10; turn++) {
    await world.settle()
    await world.runPods((pod) => pod.spec.containers[0]?.image === 'web:1')
    await world.endPods()
  }
  t.same(await sizesOf(world), ['web:1 3', 'web:broken 2'])
  t.match(await conditionOf(world, 'Progressing'), { status: 'True', reason: 'ReplicaSetUpdated' })
  await world.settle(62_000)
  t.match(await conditionOf(world, 'Progressing'), { status: 'False', reason: 'ProgressDeadlineExceeded' })
  await setImage(world, 'web:1')
  await rollOut(world)
  t.match(await conditionOf(world, 'Progressing'), { status: 'True', reason: 'NewReplicaSetAvailable' })
})

test('an earlier template comes back with its ReplicaSet, a new revision and a history', async (t) => {
  const world = await started(t)
  await rollOut(world)
  await setImage(world, 'web:2')
  await rollOut(world)
  await setImage(world, 'web:1')
  await rollOut(world)
  const sets = await setsOf(world)
  const annotations = sets.map(({ metadata }) => metadata.annotations ?? {})
  t.same(annotations.map((one) => one['deployment.kubernetes.io/revision']).sort(), ['2', '3'])
  t.same(annotations.map((one) => one['deployment.kubernetes.io/revision-history']).filter(Boolean), ['1'])
  t.match((await deploymentOf(world)).metadata.annotations, { 'deployment.kubernetes.io/revision': '3' })
})

test('Recreate starts new pods when the last old one has ended', async (t) => {
  const world = await started(t, { strategy: { type: 'Recreate' } })
  await rollOut(world)
  await setImage(world, 'web:2')
  await world.settle()
  t.same(await sizesOf(world), ['web:1 0'])
  await world.settle(5000)
  t.same(await sizesOf(world), ['web:1 0'], 'four pods are leaving')
  await world.endPods()
  await world.settle()
  t.same(await sizesOf(world), ['web:1 0', 'web:2 4'])
})

test('a paused Deployment is scaled and not rolled out', async (t) => {
  const world = await started(t)
  await rollOut(world)
  await edit(world, () => ({ paused: true }))
  await setImage(world, 'web:2')
  await edit(world, () => ({ replicas: 6 }))
  await rollOut(world)
  t.same(await sizesOf(world), ['web:1 6'])
  t.match(await conditionOf(world, 'Progressing'), { status: 'Unknown', reason: 'DeploymentPaused' })
  await edit(world, () => ({ paused: false }))
  await world.settle()
  t.match(await conditionOf(world, 'Progressing'), { reason: 'ReplicaSetUpdated' })
  await rollOut(world)
  t.same(await sizesOf(world), ['web:1 0', 'web:2 6'])
})

test('scaling in the middle of a rollout keeps the proportions', async (t) => {
  const rollingUpdate = { maxSurge: 3, maxUnavailable: 2 }
  const world = await started(t, { replicas: 10, strategy: { type: 'RollingUpdate', rollingUpdate } })
  await rollOut(world)
  await setImage(world, 'web:broken')
  for (let turn = 0; turn < 5; turn++) {
    await world.settle()
    await world.runPods((pod) => pod.spec.containers[0]?.image === 'web:1')
    await world.endPods()
  }
  t.same(await sizesOf(world), ['web:1 8', 'web:broken 5'])
  await edit(world, () => ({ replicas: 15 }))
  await world.settle()
  t.same(await sizesOf(world), ['web:1 11', 'web:broken 7'], 'the example of the documentation of Kubernetes')
})

test('revisions above the limit are removed once a rollout is complete', async (t) => {
  const world = await started(t, { revisionHistoryLimit: 1, replicas: 1 })
  for (const image of ['web:2', 'web:3', 'web:4']) {
    await rollOut(world)
    await setImage(world, image)
  }
  await rollOut(world)
  t.same(await sizesOf(world), ['web:3 0', 'web:4 1'])
})

test('a ReplicaSet of the same name without a controller gives another hash', async (t) => {
  const world = await started(t, { replicas: 1 })
  const [first] = await setsOf(world)
  if (first === undefined) return t.fail('no ReplicaSet')
  await world.store.delete('deployments', { namespace: 'default', name: 'web' })
  const { ownerReferences: _, ...metadata } = first.metadata
  const other = { ...first, metadata: { ...metadata, labels: { app: 'other' } } }
  await world.store.update('replicasets', { ...other, spec: { ...other.spec, template: templateOf('other') } })
  await deploy(world, { replicas: 1 })
  await world.settle(1000)
  t.equal((await deploymentOf(world)).status?.collisionCount, 1)
  t.same(await sizesOf(world), ['other 1', 'web:1 1'])
})

test('ReplicaSets without a controller are adopted with their pods', async (t) => {
  const world = await started(t, { replicas: 2 })
  await rollOut(world)
  const before = (await world.pods()).map(({ metadata }) => metadata.uid).sort()
  const [set] = await setsOf(world)
  await world.store.delete('deployments', { namespace: 'default', name: 'web' })
  await world.edit('replicasets', set?.metadata.name ?? '', (one) => {
    const { ownerReferences: _, ...metadata } = one.metadata
    return { ...one, metadata }
  })
  const deployment = await deploy(world, { replicas: 2 })
  await rollOut(world)
  t.match((await setsOf(world))[0]?.metadata.ownerReferences, [{ kind: 'Deployment', uid: deployment.metadata.uid }])
  t.same((await world.pods()).map(({ metadata }) => metadata.uid).sort(), before)
})

test('at rest nothing is written', async (t) => {
  const world = await started(t)
  await rollOut(world)
  const version = await world.store.version()
  await world.settle(3_600_000)
  t.equal(await world.store.version(), version)
})

test('revisions are numbers of 64 bits', async (t) => {
  const world = await workloadWorld(t)
  const adopted = async (name: string, revision: string) =>
    world.needs.creation.create(
      'replicasets',
      {
        apiVersion: 'apps/v1',
        kind: 'ReplicaSet',
        metadata: {
          name,
          namespace: 'default',
          labels,
          annotations: { 'deployment.kubernetes.io/revision': revision },
        },
        spec: { replicas: 0, selector: { matchLabels: labels }, template: templateOf(name) },
      },
      'test',
    )
  await adopted('large', '3546343826724305832')
  await adopted('too-large', '9223372036854775808')
  world.start(workloadControllers(world.needs))
  await world.settle()
  await deploy(world)
  await world.settle()
  const revisionOf = async () => (await deploymentOf(world)).metadata.annotations?.['deployment.kubernetes.io/revision']
  t.equal(await revisionOf(), '3546343826724305833')
  await setImage(world, 'web:2')
  await world.settle()
  t.equal(await revisionOf(), '3546343826724305834')
})
