import { test } from 'tap'
import type { ResourceQuotaSpec } from '../../../api/limits/resource-quota.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import { anApi } from '../../testing/api-in-memory.ts'
import { fleet } from '../../testing/fleet.ts'
import { resourceQuotaController } from './quota-controller.ts'
import { usageLedger } from './quota-ledger.ts'

const path = '/api/v1/namespaces/default'
const quota = (spec: ResourceQuotaSpec, name = 'mine') => ({
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name },
  spec,
})
const pod = (name: string, requests: { [resource: string]: string } = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'main', image: 'busybox:1.36', resources: { requests } }] },
})
const map = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })

test('of many creates at the same time only so many pass as fit', async (t) => {
  const { ask, store } = await anApi(t)
  await ask('POST', `${path}/resourcequotas`, { body: quota({ hard: { pods: '3', 'requests.cpu': '10' } }) })
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, index) => ask('POST', `${path}/pods`, { body: pod(`p${index}`, { cpu: '1' }) })),
  )
  t.same(answers.map(({ code }) => code).sort(), [...Array(3).fill(201), ...Array(7).fill(403)])
  t.equal((await store.list('pods', 'default')).items.length, 3)
  t.match(answers.find(({ code }) => code === 403)?.body, {
    kind: 'Status',
    reason: 'Forbidden',
    message: /^pods "p\d" is forbidden: exceeded quota: mine, requested: pods=1, used: pods=3, limited: pods=3$/,
  })
})

test('a deletion frees what the object used, and a write that failed holds nothing', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', `${path}/resourcequotas`, { body: quota({ hard: { 'count/configmaps': '2' } }) })
  const create = async (name: string) => (await ask('POST', `${path}/configmaps`, { body: map(name) })).code
  t.same([await create('one'), await create('one'), await create('two'), await create('three')], [201, 409, 201, 403])
  await ask('DELETE', `${path}/configmaps/one`)
  t.same([await create('three'), await create('four')], [201, 403])
  const dry = await ask('POST', `${path}/configmaps?dryRun=All`, { body: map('four') })
  t.equal(dry.code, 403, 'a dry run is refused, too')
  await ask('DELETE', `${path}/configmaps/two`)
  t.equal((await ask('POST', `${path}/configmaps?dryRun=All`, { body: map('four') })).code, 201)
  t.equal(await create('four'), 201, 'a dry run holds nothing')
  t.equal((await ask('POST', '/api/v1/namespaces/kube-system/configmaps', { body: map('one') })).code, 201)
})

test('containers must state what a quota counts, and a scope leaves pods out', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', `${path}/resourcequotas`, { body: quota({ hard: { 'requests.memory': '1Gi' } }) })
  t.match(await ask('POST', `${path}/pods`, { body: pod('one') }), {
    code: 403,
    body: { message: 'pods "one" is forbidden: failed quota: mine: must specify requests.memory for: main' },
  })
  await ask('POST', `${path}/resourcequotas`, { body: quota({ hard: { pods: '0' }, scopes: ['BestEffort'] }, 'best') })
  t.match(await ask('POST', `${path}/pods`, { body: pod('two', { memory: '1Gi' }) }), { code: 201 })
})

test('a Service that becomes one with node ports is charged for them', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', `${path}/resourcequotas`, { body: quota({ hard: { 'services.nodeports': '1' } }) })
  const ports = (count: number) => Array.from({ length: count }, (_, index) => ({ name: `p${index}`, port: index + 1 }))
  const service = (type: string, count: number) => ({ metadata: { name: 'web' }, spec: { type, ports: ports(count) } })
  t.equal((await ask('POST', `${path}/services`, { body: service('ClusterIP', 2) })).code, 201)
  t.match(await ask('PUT', `${path}/services/web`, { body: service('NodePort', 2) }), {
    code: 403,
    body: {
      message:
        /exceeded quota: mine, requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1$/,
    },
  })
  t.equal((await ask('PUT', `${path}/services/web`, { body: service('NodePort', 1) })).code, 200)
  t.equal((await ask('PUT', `${path}/services/web`, { body: service('NodePort', 1) })).code, 200)
})

test('LimitRanges give a pod its defaults, and refuse what is outside of them', async (t) => {
  const { ask } = await anApi(t)
  const limits = [{ type: 'Container', max: { memory: '1Gi' }, min: { cpu: '100m' } }]
  const range = { apiVersion: 'v1', kind: 'LimitRange', metadata: { name: 'mine' }, spec: { limits } }
  t.match(await ask('POST', `${path}/limitranges`, { body: range }), {
    code: 201,
    body: { spec: { limits: [{ default: { memory: '1Gi' }, defaultRequest: { memory: '1Gi', cpu: '100m' } }] } },
  })
  t.match(await ask('POST', `${path}/pods`, { body: pod('one') }), {
    code: 201,
    body: {
      metadata: {
        annotations: {
          'kubernetes.io/limit-ranger':
            'LimitRanger plugin set: cpu, memory request for container main; memory limit for container main',
        },
      },
      spec: { containers: [{ resources: { limits: { memory: '1Gi' }, requests: { memory: '1Gi', cpu: '100m' } } }] },
      status: { qosClass: 'Burstable' },
    },
  })
  t.match(await ask('POST', `${path}/pods`, { body: pod('two', { cpu: '99m' }) }), {
    code: 403,
    body: {
      message: 'pods "two" is forbidden: minimum cpu usage per Container is 100m, but request is 99m',
    },
  })
})

test('the status follows the objects, also where a client wrote something else', async (t) => {
  const world = fleet(t)
  const { store, clock } = world
  const quotas = usageLedger({ store, kinds: builtInKinds, clock })
  const stop = world.start(resourceQuotaController({ ...world, quotas }))
  t.teardown(stop)
  const key = { namespace: 'default', name: 'mine' }
  const hard = { configmaps: '5', persistentvolumeclaims: '1', 'example.com/none': '1' }
  const made = await store.create('resourcequotas', {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: key,
    spec: { hard },
  })
  const shows = async (configmaps: string) => {
    await world.pass(1)
    const status = (await store.get('resourcequotas', key))?.status
    t.same(status, { hard, used: { configmaps, persistentvolumeclaims: '0' } })
  }
  await shows('0')
  const one = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...key, name: 'one' } } as const
  await store.create('configmaps', one)
  await store.create('configmaps', { ...one, metadata: { namespace: 'other', name: 'one' } })
  await shows('1')
  const { resourceVersion: _, ...metadata } = made.metadata
  await store.updateStatus('resourcequotas', { ...made, metadata, status: { hard: {}, used: { configmaps: '9' } } })
  await shows('1')
  await store.delete('configmaps', one.metadata)
  await shows('0')
  await store.create('pods', aPod({ name: 'lost', requests: { cpu: '1' } }))
  const present = await store.get('resourcequotas', key)
  if (present === undefined) return t.fail('no quota')
  await store.update('resourcequotas', { ...present, spec: { hard: { cpu: '2' } } })
  await world.pass(1)
  t.same((await store.get('resourcequotas', key))?.status, { hard: { cpu: '2' }, used: { cpu: '1' } })
  const lost = await world.pod('lost')
  if (lost === undefined) return t.fail('no pod')
  await store.updateStatus('pods', { ...lost, status: { phase: 'Failed' } })
  await world.pass(1)
  t.same((await store.get('resourcequotas', key))?.status?.used, { cpu: '0' })
})

test('what a pod used is free after the end of its deletion, without a confirmation of its node', async (t) => {
  const world = fleet(t)
  const { store, clock } = world
  const quotas = usageLedger({ store, kinds: builtInKinds, clock })
  const one = { ...quota({ hard: { pods: '1' } }), apiVersion: 'v1', kind: 'ResourceQuota' } as const
  const mine = { ...one, metadata: { name: 'mine', namespace: 'default' } }
  const deletionTimestamp = rfc3339(clock.wallMs() + 30_000)
  await store.create('pods', aPod({ metadata: { deletionTimestamp, deletionGracePeriodSeconds: 30 } }))
  t.match(await quotas.usedOf(mine), { pods: { nano: 1_000_000_000n } })
  await clock.advance(60_000)
  t.match(await quotas.usedOf(mine), { pods: { nano: 1_000_000_000n } })
  await clock.advance(1)
  t.match(await quotas.usedOf(mine), { pods: { nano: 0n } })
})

test('a reader that fell too far behind counts the objects again', async (t) => {
  const world = fleet(t)
  const { store, clock } = world
  const quotas = usageLedger({ store, kinds: builtInKinds, clock })
  const mine = {
    ...quota({ hard: { configmaps: '1' } }),
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'mine', namespace: 'default' },
  } as const
  t.match(await quotas.usedOf(mine), { configmaps: { nano: 0n } })
  const metadata = { namespace: 'default', name: 'one' }
  await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata })
  for (let count = 0; count < 500; count++) {
    const data = { count: `${count}`, text: 'x'.repeat(100_000) }
    await store.update('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data })
  }
  t.match(await quotas.usedOf(mine), { configmaps: { nano: 1_000_000_000n } })
  t.same(quotas.index.changedNamespaces(), ['default'])
  t.same(quotas.index.changedNamespaces(), [])
})
