import { type Test, test } from 'tap'
import type { Pod } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { ApiAnswer } from '../../../daemon/api-client.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { mirrorManager, mirrorPlan } from './mirror-manager.ts'

const own = (hash: string) => aPod({ name: 'web-pi-01', uid: hash })
const mirror = (hash: string, uid: string, more: Parameters<typeof aPod>[0] = {}) =>
  aPod({ name: 'web-pi-01', uid, annotations: { 'kubernetes.io/config.mirror': hash }, ...more })

test('a mirror is created, created again, or removed', async (t) => {
  const pod = own('a')
  t.same(mirrorPlan(pod, undefined, true), { create: pod })
  t.equal(mirrorPlan(pod, mirror('a', '1'), true), 'none')
  for (const wrong of [mirror('b', '1'), mirror('a', '1', { metadata: { deletionTimestamp: 'now' } })]) {
    t.same(mirrorPlan(pod, wrong, true), { remove: wrong, create: pod })
  }
  t.equal(mirrorPlan(undefined, mirror('a', '1'), true), 'wait', 'it is shown until it has ended')
  t.same(mirrorPlan(undefined, mirror('a', '1'), false), { remove: mirror('a', '1') })
  t.equal(mirrorPlan(undefined, undefined, false), 'none')
})

/** An API that holds pods by name, and sends them to the node. */
function anApi(t: Test) {
  const clock = fakeClock()
  const log = quietLog(t)
  const pods = new Map<string, Pod>()
  const calls: string[] = []
  const here = new Set<string>()
  let version = 0
  let born = 0
  let node: string | undefined = 'node-uid'
  const refusals: { create?: ApiAnswer; delete?: ApiAnswer } = {}
  const nodeMetadata: { deletionTimestamp?: string } = {}
  const answer = (status: number, body: unknown = {}): ApiAnswer => ({ status, body, dateHeader: undefined })
  const manager = mirrorManager(
    {
      api: {
        get: async (path) => {
          if (path.startsWith('/api/v1/nodes/')) {
            return node === undefined ? answer(404) : answer(200, { metadata: { uid: node, ...nodeMetadata } })
          }
          const pod = pods.get(path.split('/').at(-1) ?? '')
          return pod === undefined ? answer(403) : answer(200, pod)
        },
        async post(_path, body) {
          const pod = body as Pod
          const { name = '' } = pod.metadata
          calls.push(`create ${name}`)
          if (refusals.create !== undefined) return refusals.create
          if (pods.has(name)) return answer(409)
          pods.set(name, { ...pod, metadata: { ...pod.metadata, uid: `mirror-${++born}` } })
          return answer(201)
        },
        async delete(path, _signal, options) {
          const { uid } = (options as { preconditions: { uid: string } }).preconditions
          calls.push(`delete ${uid}`)
          if (refusals.delete !== undefined) return refusals.delete
          pods.delete(path.split('/').at(-1) ?? '')
          return answer(200)
        },
      },
      isHere: (uid) => here.has(uid),
      clock,
      random: () => 0.5,
      log,
    },
    { nodeName: 'pi-01' },
  )
  const stopping = new AbortController()
  void manager.run(stopping.signal)
  t.teardown(() => stopping.abort())
  return {
    pods,
    calls,
    here,
    clock,
    log,
    manager,
    refusals,
    nodeMetadata,
    answer,
    deliver: () => manager.desired({ epoch: 'one', version: ++version, pods: [...pods.values()] }),
    register: (uid: string | undefined) => {
      node = uid
    },
  }
}

test('each static pod has a mirror, owned by the node, and none without it', async (t) => {
  const { pods, calls, here, clock, manager, deliver } = anApi(t)
  manager.staticPods([own('a')])
  await clock.advance(60_000)
  t.same(calls, [], 'nothing is done before a message of the control plane')
  deliver()
  await clock.advance(0)
  deliver()
  await clock.advance(60_000)
  t.same(calls, ['create web-pi-01'])
  t.match(pods.get('web-pi-01')?.metadata, {
    annotations: { 'kubernetes.io/config.mirror': 'a' },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'pi-01', uid: 'node-uid', controller: true }],
  })
  manager.staticPods([own('b')])
  await clock.advance(0)
  deliver()
  await clock.advance(60_000)
  t.same(calls.slice(1), ['delete mirror-1', 'create web-pi-01'], 'a changed file changes it')
  here.add('b')
  manager.staticPods([])
  await clock.advance(5_000)
  t.equal(calls.length, 3)
  here.delete('b')
  await clock.advance(5_000)
  t.same(calls.slice(3), ['delete mirror-2'])
})

test('a problem is logged once, and retried', async (t) => {
  const { pods, calls, clock, log, manager, deliver, register } = anApi(t)
  register(undefined)
  manager.staticPods([own('a')])
  deliver()
  await clock.advance(60_000)
  t.same(calls, [])
  register('node-uid')
  pods.set('web-pi-01', aPod({ name: 'web-pi-01' }))
  await clock.advance(60_000)
  pods.clear()
  await clock.advance(60_000)
  deliver()
  t.equal(pods.size, 1)
  const reasons = log.lines.filter(({ level }) => level === 'warn').map(({ facts }) => `${facts['error']}`)
  t.match(reasons, [/There is no Node yet: 404/, /Another pod of this name is in the API/])
  t.match(log.lines.find(({ level }) => level === 'debug')?.facts, { pod: 'default/web-pi-01', error: /./ })
})

test('the mirror has the labels and annotations of its pod, and no fields that are not set', async (t) => {
  const { pods, clock, log, manager, deliver } = anApi(t)
  const plain = aPod({ name: 'web-pi-01', uid: 'a' })
  const labelled = aPod({
    name: 'db-pi-01',
    namespace: 'shop',
    uid: 'b',
    labels: { app: 'db' },
    annotations: { note: 'x' },
  })
  const { labels: _, ...metadata } = plain.metadata
  manager.staticPods([{ ...plain, metadata }, labelled])
  deliver()
  await clock.advance(0)
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: 'pi-01', uid: 'node-uid', controller: true }]
  t.same(pods.get('db-pi-01')?.metadata, {
    name: 'db-pi-01',
    namespace: 'shop',
    labels: { app: 'db' },
    annotations: { note: 'x', 'kubernetes.io/config.mirror': 'b' },
    ownerReferences,
    uid: 'mirror-2',
  })
  t.same(pods.get('web-pi-01')?.metadata, {
    name: 'web-pi-01',
    namespace: plain.metadata.namespace,
    annotations: { 'kubernetes.io/config.mirror': 'a' },
    ownerReferences,
    uid: 'mirror-1',
  })
  t.same(pods.get('web-pi-01')?.spec, plain.spec)
  t.same(
    log.lines.map(({ message, facts }) => [message, facts['pod']]),
    [
      ['Mirror pod created', 'default/web-pi-01'],
      ['Mirror pod created', 'shop/db-pi-01'],
    ],
  )
})

test('while the static pods are unknown no mirror is removed', async (t) => {
  const { pods, calls, clock, manager, deliver } = anApi(t)
  pods.set('web-pi-01', mirror('a', 'mirror-1'))
  deliver()
  await clock.advance(60_000)
  t.same(calls, [])
  manager.staticPods(undefined)
  await clock.advance(60_000)
  t.same(calls, [])
  manager.staticPods([])
  await clock.advance(0)
  t.same(calls, ['delete mirror-1'])
})

test('a Node that is being deleted gets no mirror', async (t) => {
  const { calls, clock, log, manager, deliver, nodeMetadata } = anApi(t)
  nodeMetadata.deletionTimestamp = '2026-01-01T00:00:00Z'
  manager.staticPods([own('a')])
  deliver()
  await clock.advance(1_000)
  t.same(calls, [])
  t.match(log.lines, [{ level: 'warn', facts: { pod: 'default/web-pi-01', error: { message: /no Node yet: 200$/ } } }])
})

test('a refusal is an error with the status and the words of the API', async (t) => {
  const { calls, clock, log, manager, deliver, refusals, answer } = anApi(t)
  refusals.create = answer(422, { kind: 'Status', message: 'spec is invalid' })
  manager.staticPods([own('a')])
  deliver()
  await clock.advance(0)
  t.match(log.lines, [
    { facts: { error: { name: 'MirrorRefused', message: 'Mirror pod rejected: 422 spec is invalid' } } },
  ])
  delete refusals.create
  await clock.advance(10_000)
  deliver()
  refusals.delete = answer(500)
  manager.staticPods([])
  await clock.advance(0)
  t.match(log.lines.at(-1), { facts: { error: { message: 'Mirror pod not removed: 500' } } })
  for (const status of [202, 403, 404, 409]) {
    refusals.delete = answer(status)
    const [lines, before] = [log.lines.length, calls.length]
    await clock.advance(60_000)
    t.ok(calls.length > before, 'removed again until a message shows that it is gone')
    t.equal(log.lines.length, lines, `${status} is not a failure`)
  }
})

test('a mirror that exists already, though no message has shown it, is right', async (t) => {
  const { pods, calls, clock, log, manager, deliver } = anApi(t)
  manager.staticPods([own('a')])
  deliver()
  pods.set('web-pi-01', mirror('a', 'mirror-1'))
  await clock.advance(0)
  t.same(calls, ['create web-pi-01'])
  t.same(log.messages('warn'), [])
})

test('an older message of the control plane changes nothing', async (t) => {
  const { calls, clock, manager } = anApi(t)
  manager.staticPods([own('a')])
  manager.desired({ epoch: 'one', version: 2, pods: [mirror('a', 'mirror-1')] })
  manager.desired({ epoch: 'one', version: 1, pods: [] })
  await clock.advance(60_000)
  t.same(calls, [])
})
