import { test } from 'tap'
import { emptyFleet, fleetAfter } from './fleet-state.ts'
import { podLevel, shownPods } from './pod-view.ts'
import { ago, counted, duration, isFound } from './view-words.ts'

test('an update changes the cards that it names, and a reset forgets all', async (t) => {
  const node = { name: 'pi-1', state: 'ready', pods: 0 } as const
  const first = fleetAfter(emptyFleet, { nodes: { put: [node] }, complete: true })
  t.equal(first.nodes.get('pi-1'), node)
  const second = fleetAfter(first, { usage: { 'pi-1': [1, 2, 3, 4, 5, 6] } })
  t.equal(second.nodes, first.nodes, 'a map without a change stays the same')
  t.same(second.usage.get('pi-1'), [1, 2, 3, 4, 5, 6])
  t.equal(fleetAfter(second, { nodes: { gone: ['pi-1'] } }).nodes.size, 0)
  const rights = { nodes: true, usage: false, requests: false, pods: false, events: false, workloads: false }
  t.match(fleetAfter(second, { reset: rights }), { isComplete: false, rights })
})

test('pods that need attention come first', async (t) => {
  const pod = (name: string, status: string, phase = 'Running') => ({
    name,
    namespace: 'default',
    status,
    phase,
    ready: '0/1',
    version: '1',
  })
  const pods = [
    { ...pod('fine', 'Running'), isReady: true as const },
    pod('done', 'Completed', 'Succeeded'),
    pod('crash', 'CrashLoopBackOff'),
    pod('slow', 'Running'),
  ]
  t.same(
    shownPods(pods, '', {}).map(({ name }) => name),
    ['crash', 'slow', 'fine', 'done'],
  )
  t.same(
    shownPods(pods, '', { state: 'waiting' }).map(({ name }) => name),
    ['crash', 'slow'],
  )
  t.equal(podLevel(pod('lost', 'Running', 'Failed')), 'bad')
})

test('numbers and times are short', async (t) => {
  t.same([5, 65, 7_200, 200_000].map(duration), ['5 s', '1 min', '2 h', '2 d'])
  t.equal(ago(undefined, 10), '')
  t.same([counted(1, 'pod'), counted(2, 'pod')], ['1 pod', '2 pods'])
})

test('every word of a search is in one of the texts', async (t) => {
  t.ok(isFound('B a', ['xa', undefined, 'yb']))
  t.notOk(isFound('a c', ['xa', 'yb']))
})
