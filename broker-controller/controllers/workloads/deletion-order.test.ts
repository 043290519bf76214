import { test } from 'tap'
import { aPod, type PodOverrides } from '../../../api/testing/builders.ts'
import { deletionCostAnnotation, inDeletionOrder } from './deletion-order.ts'

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
  inDeletionOrder(pods, related, nowMs).map(({ metadata }) => metadata.name)

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
