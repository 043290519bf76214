import { test } from 'tap'
import { aPod, type PodOverrides } from '../../../api/testing/builders.ts'
import { finished } from '../../../daemon/watchdog/steps.ts'
import { deletionCostAnnotation, firstOfJobToDelete, firstToDelete } from './deletion-order.ts'

const nowMs = Date.parse('2026-01-02T00:00:00Z')
const running = (name: string, over: PodOverrides = {}, readySince = '2026-01-01T00:00:00Z') =>
  aPod({
    name,
    nodeName: 'pi-01',
    phase: 'Running',
    status: { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: readySince }] },
    ...over,
  })
const order = (pods: readonly ReturnType<typeof aPod>[], related = pods) =>
  finished(firstToDelete(pods, related, { count: pods.length, nowMs })).map(({ metadata }) => metadata.name)

test('what serves least is deleted first', async (t) => {
  const pods = [
    running('ready'),
    running('not-ready', { status: { phase: 'Running' } }),
    aPod({ name: 'pending', nodeName: 'pi-01' }),
    aPod({ name: 'unknown', nodeName: 'pi-01', phase: 'Unknown' }),
    aPod({ name: 'unbound' }),
  ]
  t.same(order(pods, []), ['unbound', 'pending', 'unknown', 'not-ready', 'ready'])
})

test('the deletion cost decides among pods that are alike, and then the number on their node', async (t) => {
  const cost = (name: string, value: string) => running(name, { annotations: { [deletionCostAnnotation]: value } })
  t.same(order([cost('c', '10'), cost('a', '-5'), cost('b', 'seven')], []), ['a', 'b', 'c'])
  t.same(order([cost('big', '3000000000'), cost('less', '-1')], []), ['less', 'big'], 'no 32-bit integer counts as 0')
  const crowded = [running('alone', { nodeName: 'pi-02' }), running('x'), running('y')]
  t.same(order(crowded).at(-1), 'alone')
})

test('younger pods go before older ones, by the magnitude of their ages', async (t) => {
  t.same(order([running('old'), running('young', {}, '2026-01-01T23:59:00Z')], []), ['young', 'old'])
  const alike = [running('b', { uid: 'b' }, '2026-01-01T01:00:00Z'), running('a', { uid: 'a' }, '2026-01-01T00:00:00Z')]
  t.same(order(alike, []), ['a', 'b'], 'of ages alike the uid decides')
  const made = (name: string, creationTimestamp: string) => aPod({ name, metadata: { creationTimestamp } })
  t.same(order([made('old', '2025-12-01T00:00:00Z'), made('new', '2026-01-01T23:00:00Z')], []), ['new', 'old'])
})

test('of pods ready as long, the one that restarted most goes first', async (t) => {
  const restarted = (name: string, restartCount: number) => {
    const one = running(name)
    const container = { name: 'main', image: 'i', imageID: '', ready: true, restartCount }
    return { ...one, status: { ...one.status, containerStatuses: [container] } }
  }
  t.same(order([restarted('calm', 0), restarted('crashing', 7)], []), ['crashing', 'calm'])
})

test('restarts of sidecars decide after those of containers, and those of other init containers do not', async (t) => {
  const restarted = (name: string, sidecar: number, init: number) => {
    const one = running(name, {
      spec: {
        initContainers: [
          { name: 'proxy', image: 'i', restartPolicy: 'Always' },
          { name: 'setup', image: 'i' },
        ],
      },
    })
    const state = { image: 'i', imageID: '', ready: true }
    const initContainerStatuses = [
      { ...state, name: 'proxy', restartCount: sidecar },
      { ...state, name: 'setup', restartCount: init },
    ]
    return { ...one, status: { ...one.status, initContainerStatuses } }
  }
  t.same(order([restarted('calm', 0, 0), restarted('crashing', 3, 0)], []), ['crashing', 'calm'])
  t.same(order([restarted('a', 2, 0), restarted('b', 3, 9), restarted('c', 2, 9)], []), ['b', 'a', 'c'])
})

test('pods that ended or are leaving do not crowd a node', async (t) => {
  const [here, there] = [running('here'), running('there', { nodeName: 'pi-02' })]
  const ended = running('ended', { phase: 'Failed', status: { phase: 'Failed' } })
  const leaving = running('leaving', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })
  const busy = running('busy', { nodeName: 'pi-02' })
  t.same(order([here, there], [here, there, ended, leaving, busy]), ['there', 'here'])
})

test('a pod whose time is unknown goes before one whose time is known', async (t) => {
  const untimed = running('untimed', { status: { conditions: [{ type: 'Ready', status: 'True' }] } })
  t.same(order([running('timed'), untimed], []), ['untimed', 'timed'])
  t.same(order([untimed, running('timed')], []), ['untimed', 'timed'])
})

test('a time in the future is that of the youngest', async (t) => {
  t.same(order([running('young', {}, '2026-01-01T23:59:59Z'), running('future', {}, '2026-01-02T01:00:00Z')], []), [
    'future',
    'young',
  ])
  const later = [running('b', { uid: 'b' }, '2026-01-03T00:00:00Z'), running('a', { uid: 'a' }, '2026-01-09T00:00:00Z')]
  t.same(order(later, []), ['a', 'b'], 'among them the uid decides')
  t.same(order(later.toReversed(), []), ['a', 'b'])
})

test('a deletion cost is an integer of 32 bits as Go writes it, and anything else is 0', async (t) => {
  const cost = (value: string) => running(value, { annotations: { [deletionCostAnnotation]: value } })
  t.same(order([cost('2147483647'), cost('2147483648')], []), ['2147483648', '2147483647'])
  t.same(order([cost('-2147483649'), cost('-2147483648')], []), ['-2147483648', '-2147483649'])
  for (const wrong of ['05', '5e1', '+5', ' 5']) t.same(order([cost('1'), cost(wrong)], []), [wrong, '1'])
})

test('of very many pods the same ones go first', async (t) => {
  const many = Array.from({ length: 1700 }, (_, index) => {
    const cost = String((index * 7919) % 1000)
    return running(`p-${index}`, { nodeName: `pi-${index % 7}`, annotations: { [deletionCostAnnotation]: cost } })
  })
  const first = (count: number) => finished(firstToDelete(many, many, { count, nowMs }))
  t.same(first(600), first(many.length).slice(0, 600))
  t.same(first(0), [])
})

test('a node with many pods of the same Deployment loses one first, also where they are of another ReplicaSet', async (t) => {
  const on = (name: string, nodeName: string) => running(name, { nodeName })
  const own = [on('a', 'pi-1'), on('b', 'pi-2')]
  const first = (related: ReturnType<typeof on>) =>
    finished(firstToDelete(own, [...own, related], { count: 1, nowMs })).map(({ metadata }) => metadata.name)
  t.same(first(on('other', 'pi-1')), ['a'])
  t.same(first(on('other', 'pi-2')), ['b'])
})

test('of the pods of a Job the youngest goes first, whatever its deletion cost', async (t) => {
  const jobOrder = (...pods: readonly ReturnType<typeof aPod>[]) =>
    finished(firstOfJobToDelete(pods, pods.length)).map(({ metadata }) => metadata.name)
  const annotations = { [deletionCostAnnotation]: '-100' }
  const old = running('old', { uid: 'a', annotations }, '2026-01-01T12:00:00Z')
  const young = running('young', { uid: 'b' }, '2026-01-01T12:00:01Z')
  t.same(jobOrder(old, young), ['young', 'old'], 'as ActivePods')
  t.same(order([young, old], []), ['old', 'young'])
  const made = (name: string, creationTimestamp: string) => aPod({ name, metadata: { creationTimestamp } })
  t.same(jobOrder(made('first', '2026-01-01T12:00:00Z'), made('second', '2026-01-01T12:00:01Z')), ['second', 'first'])
  const untimed = running('untimed', { status: { conditions: [{ type: 'Ready', status: 'True' }] } })
  t.same(jobOrder(young, untimed), ['untimed', 'young'])
  t.same(finished(firstOfJobToDelete([old, young], 1)), [young])
  t.same(finished(firstOfJobToDelete([old], 0)), [])
})
