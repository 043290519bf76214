import { type Test, test } from 'tap'
import type { Pod } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { ApiAnswer } from '../../../daemon/api-client.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { mirrorManager, mirrorStep } from './mirror-manager.ts'

const own = (hash: string) => aPod({ name: 'web-pi-01', uid: hash })
const mirror = (hash: string, uid: string, more: Parameters<typeof aPod>[0] = {}) =>
  aPod({ name: 'web-pi-01', uid, annotations: { 'kubernetes.io/config.mirror': hash }, ...more })

test('a mirror is created, created again, or removed', async (t) => {
  t.equal(mirrorStep(own('a'), undefined, true), 'create')
  t.equal(mirrorStep(own('a'), mirror('a', '1'), true), 'none')
  t.equal(mirrorStep(own('a'), mirror('b', '1'), true), 'replace')
  t.equal(mirrorStep(own('a'), mirror('a', '1', { metadata: { deletionTimestamp: 'now' } }), true), 'replace')
  t.equal(mirrorStep(undefined, mirror('a', '1'), true), 'wait', 'it is shown until it has ended')
  t.equal(mirrorStep(undefined, mirror('a', '1'), false), 'delete')
  t.equal(mirrorStep(undefined, undefined, false), 'none')
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
  const answer = (status: number, body: unknown = {}): ApiAnswer => ({ status, body, dateHeader: undefined })
  const manager = mirrorManager(
    {
      api: {
        get: async (path) => {
          if (path.startsWith('/api/v1/nodes/')) {
            return node === undefined ? answer(404) : answer(200, { metadata: { uid: node } })
          }
          const pod = pods.get(path.split('/').at(-1) ?? '')
          return pod === undefined ? answer(403) : answer(200, pod)
        },
        async post(_path, body) {
          const pod = body as Pod
          const { name = '' } = pod.metadata
          calls.push(`create ${name}`)
          if (pods.has(name)) return answer(409)
          pods.set(name, { ...pod, metadata: { ...pod.metadata, uid: `mirror-${++born}` } })
          return answer(201)
        },
        async delete(path, _signal, options) {
          const { uid } = (options as { preconditions: { uid: string } }).preconditions
          calls.push(`delete ${uid}`)
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
})
